import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { run } from '#functions/cli/run.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { FleetError } from '#shared/operations/fleet/fleet.ts';
import { aNode, aRecord, aTaint } from '#test/contracts/partition-builders.ts';
import { recordContact } from '#test/world/record-contact.ts';
import { commandLine, NOW } from './command-line.ts';
import { plainOutput } from './plain-output.ts';

const PROD = clusterName('prod');
/** Each of these begins a new line on some terminal, so the text after it could pass for output of Taintward. */
const ENDS = ['\n', '\r\n', '\r', '\u2028', '\u2029', '\u0085', '\u000b', '\u000c', '\u202e\n'];
const FORGED = 'No action required.';
const ACTED_UPON = /(?!\n)[\p{Cc}\u2028-\u202e]/u;

/** Returns the output of a command on a fleet whose reasons, names, and errors all end with `end` and a forged line. */
async function printed(t: TestContext, end: string, ...argv: readonly string[]): Promise<string> {
  const reason = `because${end}${FORGED}`;
  const { fleet, store, rulesStore, leases, clock } = commandLine(t);
  await recordContact(leases, PROD, NOW);
  Object.assign(fleet, { cluster: () => Promise.reject(new FleetError(`Cannot ask: ${reason}`)) });
  const operator = { rulesStore, clock, actor: `anna${end}${FORGED}` };
  await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce', reason }, operator);
  await perform(
    {
      kind: 'hold',
      cluster: PROD,
      target: { kind: 'node', node: nodeName(`n${end}${FORGED}`) },
      reason: reason,
    },
    operator,
  );
  await perform(
    {
      kind: 'hold',
      cluster: PROD,
      target: { kind: 'pod', namespace: 'default', name: 'web-1' },
      reason: reason,
    },
    operator,
  );
  await perform({ kind: 'stop', cluster: PROD, reason: reason }, operator);
  await perform({ kind: 'stop', reason: reason }, operator);
  const ref = { cluster: PROD, node: nodeName('node-1') };
  const node = aNode({ taints: [aTaint({ value: `v${end}${FORGED}` })] });
  const record = aRecord({ name: 'web-1', owner: { kind: `Kind${end}${FORGED}`, name: 'web' } });
  await store.commit(ref, 0, { node, schedule: [record], end: [], live: true }, NOW);
  const output = plainOutput();
  let complaint = '';
  await run(argv, {
    ...output.deps,
    fleet: async () => fleet,
    live: async () => fleet,
    clock,
    connect: () => assert.fail('a cluster was asked for'),
    complain: (text) => {
      complaint += text;
    },
  });
  return output.state.printed + complaint;
}

const COMMANDS: readonly (readonly string[])[] = [
  ['status'],
  ['holds'],
  ['audit'],
  ['audit', '-o', 'wide'],
  ['history'],
  ['history', '-o', 'wide'],
  ['pending'],
  ['doctor'],
  ['explain', 'pod', 'default/web-1', '--cluster', 'prod'],
  ['explain', 'node', 'node-1', '--cluster', 'prod'],
  ['explain', 'node', 'node-1', '--cluster', 'prod', '-o', 'wide'],
  ['what-if', 'prod', '--nodes', 'all', '--taint', 'a=b:NoExecute'],
  ['policy', 'get', 'prod'],
];

describe('keeps reasons, names, and errors within their line', () => {
  for (const argv of COMMANDS) {
    test(argv.join(' '), async (t) => {
      const plain = await printed(t, ' ', ...argv);
      for (const end of ENDS) {
        const text = await printed(t, end, ...argv);
        assert.doesNotMatch(text, ACTED_UPON);
        assert.doesNotMatch(text, /^No action required\./m);
        assert.equal(text.split('\n').length, plain.split('\n').length, text);
      }
    });
  }
});

test('prints a confirmation of a hostile target name on one line', async (t) => {
  for (const end of ENDS) {
    const node = `n${end}${FORGED}`;
    const text = await printed(t, end, 'hold', 'node', node, '--yes', '--cluster', 'prod', '--reason', node);
    assert.match(
      text,
      /^Node n.+ in cluster prod is held\. To release it, run taintward release \S+ --reason 'REASON'\.\nFleet: a test\n$/,
    );
  }
});
