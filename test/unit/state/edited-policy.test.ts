import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { editedPolicy } from '#shared/state/edited-policy.ts';
import { PolicyError } from '#shared/state/policy-document.ts';

const WRITTEN = `# Ours.
mode: observe # since May
guard:
  cluster:
    percent: 20 # of all nodes

# Kept by hand.
exclude:
- namespaces: [kube-system]
releaseRate: 5
`;
const replaced = (from: string, to: string): string => WRITTEN.replace(from, to);

describe('changes one setting in the text of a document', () => {
  type Edit = Parameters<typeof editedPolicy>;
  const cases: Readonly<Record<string, readonly [edit: Edit, expected: string]>> = {
    'a scalar': [[WRITTEN, 'releaseRate', '7'], replaced('releaseRate: 5', 'releaseRate: 7')],
    'a mapping, before a comment on the next setting': [
      [WRITTEN, 'guard', '{ dryRun: true }'],
      replaced('  cluster:\n    percent: 20 # of all nodes', '  dryRun: true'),
    ],
    'a list without indentation': [
      [WRITTEN, 'exclude', '[{ namespaces: [web] }, {}]'],
      replaced('- namespaces: [kube-system]', '  - namespaces:\n      - web\n  - {}'),
    ],
    'a setting that is not written': [[WRITTEN, 'method', 'evict'], `${WRITTEN}method: evict\n`],
    'a document without a last line break': [
      ['mode: observe', 'guard', 'off'],
      "mode: observe\nguard: 'off'",
    ],
    'an empty mapping': [['{}', 'mode', 'observe'], 'mode: observe\n'],
    'a quoted name': [['"mode": observe', 'mode', 'enforce'], 'mode: enforce\n'],
    'a document on one line': [['{ mode: observe }', 'mode', 'enforce'], 'mode: enforce\n'],
    'a setting with an anchor': [
      ['exclude: &all [{ taints: [a] }]\ninclude: *all\n', 'exclude', '[]'],
      'include:\n  - taints:\n      - a\nexclude: []\n',
    ],
    'a setting to be removed': [
      [WRITTEN, 'exclude', undefined],
      replaced('exclude:\n- namespaces: [kube-system]\n', ''),
    ],
    'a name that is no property of its own': [
      ['mode: observe\n', '__proto__', '5'],
      'mode: observe\n__proto__: 5\n',
    ],
  };
  for (const [name, [edit, expected]] of Object.entries(cases))
    test(name, () => assert.equal(editedPolicy(...edit), expected));
});

test('rejects an edit of a text, or to a value, that is not YAML', () => {
  assert.throws(() => editedPolicy('mode: [', 'mode', 'observe'), PolicyError);
  assert.throws(() => editedPolicy(WRITTEN, 'mode', '['.repeat(9_000)), PolicyError);
});
