import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import type { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { commandOf } from '#functions/console/page/act-command.ts';

type Draft = Parameters<typeof commandOf>[0];

const cluster = 'prod';
const HOSTILE = "it's; $(touch /tmp/x)";

/** Returns the words of the command line as a shell and the program read them: arguments and given options. */
function parsed(command: string): readonly unknown[] {
  const words = execFileSync('sh', ['-c', `for word in ${command}; do printf '%s\\0' "$word"; done`], {
    encoding: 'utf8',
  });
  const program = createProgram({} as CliDeps);
  let found: readonly unknown[] = [];
  const listen = (parent: Command): void => {
    for (const each of parent.commands) {
      each.action(() => {
        found = [each.name(), ...each.args, each.opts()['reason']];
      });
      listen(each);
    }
  };
  listen(program);
  program.parse(words.split('\0').slice(1, -1), { from: 'user' });
  return found;
}

test('the command of each act is one that a shell and the command line read as that act', () => {
  const acts: readonly (readonly [Draft, string, string])[] = [
    [{ kind: 'stop' }, '', 'taintward stop --all'],
    [{ kind: 'stop', cluster }, 'a b', "taintward stop prod --reason 'a b' --for 15m"],
    [{ kind: 'resume', cluster, id: 's1' }, '', 'taintward resume prod --id s1 --reason REASON'],
    [
      { kind: 'hold', cluster, target: { kind: 'pod', namespace: 'shop', name: 'web-0' } },
      'x',
      'taintward hold pod shop/web-0 --cluster prod --reason x --for 15m',
    ],
    [{ kind: 'release', cluster, id: 'h1' }, 'x', 'taintward release h1 --reason x'],
    [
      { kind: 'release-guard', cluster, scope: 'zone/a' },
      'x',
      'taintward release guard prod --scope zone/a --reason x',
    ],
    [{ kind: 'retry', cluster }, 'x', 'taintward retry prod --reason x'],
    [
      { kind: 'apply-policy', cluster, text: 'mode: observe' },
      'x',
      'taintward policy apply prod -f policy.yaml --reason x',
    ],
  ];
  for (const [draft, reason, expected] of acts) {
    const lasts = draft.kind === 'hold' || (draft.kind === 'stop' && reason !== '');
    const command = commandOf(draft, reason, lasts ? 15 * 60_000 : 0) ?? '';
    assert.equal(command, expected);
    assert.equal(parsed(command)[0], expected.split(' ')[/^(hold|apply)/.test(draft.kind) ? 2 : 1]);
  }
  assert.equal(commandOf({ kind: 'retry', cluster, node: 'node-1' }, 'x', 0), undefined);
});

test('a shell reads hostile names and reasons in a command as single words', () => {
  const command = commandOf({ kind: 'release', cluster, id: HOSTILE }, HOSTILE, 0) ?? '';
  assert.deepEqual(parsed(command), ['release', HOSTILE, HOSTILE]);
});
