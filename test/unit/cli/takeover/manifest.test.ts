import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { loadAll } from 'js-yaml';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';

/** Returns the output of the command. */
async function printed(...args: readonly string[]): Promise<string> {
  let text = '';
  const print = (part: string) => {
    text += part;
  };
  const program = createProgram({ print } as CliDeps);
  for (const command of [program, ...program.commands.flatMap((each) => [each, ...each.commands])])
    command.exitOverride().configureOutput({ writeErr: () => undefined });
  await program.parseAsync(['takeover', 'manifest', ...args], { from: 'user' });
  return text;
}

const objects = async (...args: readonly string[]): Promise<readonly { readonly kind: string }[]> =>
  loadAll(await printed(...args)) as { kind: string }[];

describe('the manifest of a takeover', () => {
  test("lists the definition, the heartbeat, the relay's role, the policy, and last the binding", async () => {
    const kinds = (await objects()).map(({ kind }) => kind);
    assert.deepEqual(kinds, [
      'CustomResourceDefinition',
      'Takeover',
      'ClusterRole',
      'ClusterRoleBinding',
      'MutatingAdmissionPolicy',
      'MutatingAdmissionPolicyBinding',
    ]);
  });

  test('passes heartbeat timeout and keys to the relay and the policy', async () => {
    const text = await printed('--heartbeat-timeout', '20', '--keys', ' node.kubernetes.io/unreachable');
    assert.match(text, /duration\("20s"\)/);
    assert.match(text, /lapseSeconds: 20\n/);
    assert.doesNotMatch(text, /"node.kubernetes.io\/not-ready"/);
  });

  test('never contains a heartbeat, because a repeated apply must not overwrite it', async () => {
    const live = (await objects()).find(({ kind }) => kind === 'Takeover');
    assert.deepEqual((live as { spec?: object }).spec, {
      keys: ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'],
      lapseSeconds: 90,
    });
  });
});

describe('rejects a manifest in a sentence with a remedy', () => {
  const rows: readonly (readonly [what: string, args: readonly string[], message: RegExp])[] = [
    [
      'a key without a twin',
      ['--keys', 'gpu'],
      /"gpu" cannot be taken over\. Specify node.kubernetes.io\/not-ready or /,
    ],
    ['no seconds', ['--heartbeat-timeout', '0'], /whole number of seconds/],
    ['half a second', ['--heartbeat-timeout', '0.5'], /whole number of seconds/],
  ];
  for (const [what, args, message] of rows) {
    test(what, () => assert.rejects(printed(...args), message));
  }
});
