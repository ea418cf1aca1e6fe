import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { styleText } from 'node:util';
import type { Paint } from '#functions/cli/paint.ts';
import { run } from '#functions/cli/run.ts';
import { podUid } from '#shared/eviction/identity.ts';
import { textLog } from '#shared/telemetry/text-log.ts';
import { aNode, anEnding, aReason, aRecord, aRef, aTaint, NOW } from '#test/contracts/partition-builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { commandLine } from './command-line.ts';
import { plainOutput } from './plain-output.ts';

/** A window title, a clear screen, an 8-bit color sequence, a separate line, and right-to-left text. */
const ODD = '\u001b]0;owned\u0007\u001b[2J\u009b31m\nNo action required.\r\u202edaeh';
const PLAIN = 'odd';
// biome-ignore lint/suspicious/noControlCharactersInRegex: styles begin so
const STYLES = /\u001b\[(?:1|2|22|3[1-5]|39)m/g;
const ACTED_UPON = /(?!\n)[\p{Cc}\u202e]/u;

const paint: Paint = (style, text) => styleText(style, text, { validateStream: false });

/** Returns the output of a command on a fleet whose names are all `name`, as a compromised relay can write them. */
async function printed(t: TestContext, name: string, ...argv: readonly string[]): Promise<string> {
  const { fleet, store, letters } = commandLine(t);
  const [cluster = assert.fail('there is no cluster')] = await fleet.clusters();
  const ref = aRef(cluster, `n${name}`);
  const record = aRecord({
    uid: podUid('u'),
    namespace: `ns${name}`,
    name: `pod${name}`,
    causes: [aReason('key', name)],
    owner: { kind: name, name },
    failure: { since: NOW, error: name },
  });
  const node = aNode({ taints: [aTaint({ key: 'key', value: name })] });
  await store.commit(ref, 0, { node, schedule: [record], end: [], live: true }, NOW);
  await store.commit(aRef(cluster, `m${name}`), 0, { node, schedule: [], end: [], live: true }, NOW);
  await store.end(aRef(cluster, `m${name}`), [anEnding(record, { error: name })], NOW);
  letters.add('evictions-due', { body: name }, name);
  const output = plainOutput();
  let complaint = '';
  await run(argv, {
    ...output.deps,
    paint,
    fleet: async () => fleet,
    live: async () => fleet,
    clock: new DrivenClock(NOW),
    connect: () => assert.fail('a cluster was asked for'),
    complain: (text) => {
      complaint += text;
    },
  });
  return output.state.printed + complaint;
}

const COMMANDS: readonly (readonly string[])[] = [
  ['pending', 'prod'],
  ['pending', 'prod', '-o', 'wide'],
  ['history', 'prod'],
  ['history', 'prod', '-o', 'wide'],
  ['status'],
  ['status', '-o', 'wide'],
  ['dead-letters', 'list'],
  ['dead-letters', 'list', '-o', 'wide'],
];

test('escapes names in every command, so that a name neither controls the terminal nor begins a line', async (t) => {
  for (const argv of COMMANDS) {
    const text = (await printed(t, ODD, ...argv)).replaceAll(STYLES, '');
    const plain = await printed(t, PLAIN, ...argv);
    assert.doesNotMatch(text, ACTED_UPON, argv.join(' '));
    if (argv[0] !== 'status') assert.ok(text.includes('\\u001b]0;owned'), `${argv.join(' ')} names nobody`);
    assert.equal(text.split('\n').length, plain.split('\n').length, `${argv.join(' ')}\n${text}`);
  }
});

test('keeps names unchanged in JSON for programs without controlling a terminal', async (t) => {
  const text = await printed(t, ODD, 'pending', 'prod', '-o', 'json');
  assert.doesNotMatch(text, ACTED_UPON);
  // Below the JSON, on standard error, is a warning that the data may be old.
  const shown = JSON.parse(text.slice(0, text.lastIndexOf(']') + 1));
  assert.ok(JSON.stringify(shown).includes(JSON.stringify(`pod${ODD}`)));
});

test('escapes names in error messages', async (t) => {
  assert.doesNotMatch(await printed(t, ODD, 'pending', `prod${ODD}`), ACTED_UPON);
});

test('keeps a mistyped argument within its line in error messages', async (t) => {
  const forged = 'prod\ntaintward: all is well';
  for (const line of [
    ['pending', forged],
    [forged],
    ['status', '--no-such', forged],
    ['stop', '--for', forged],
  ]) {
    const output = await printed(t, PLAIN, ...line);
    assert.doesNotMatch(output, /^taintward: all is well/m);
  }
  assert.match(
    await printed(t, PLAIN, 'statu'),
    /^error: unknown command 'statu'\n\(Did you mean status\?\)$/m,
  );
});

test('escapes names in the log of npm start', () => {
  const lines: string[] = [];
  const log = textLog(new DrivenClock(NOW), (line) => lines.push(line));
  const pod = { cluster: `c${ODD}`, node: `n${ODD}`, namespace: ODD, pod: ODD, uid: ODD };
  log.info('pod.evicted', { ...pod, dueAt: NOW, delayMs: 0, taints: [ODD] } as never);
  log.warn('relay.watch-failed', { cluster: ODD, resource: 'nodes', error: new Error(ODD) } as never);
  assert.equal(lines.length, 2);
  for (const line of lines) assert.doesNotMatch(line.replaceAll(STYLES, ''), /[\p{Cc}\u202e]/u);
});
