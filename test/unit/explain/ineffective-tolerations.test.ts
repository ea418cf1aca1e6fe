import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ineffectiveTolerations } from '#shared/explain/ineffective-tolerations.ts';
import { deadline } from '#shared/taints/deadline.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE, type Toleration } from '#shared/taints/taint.ts';

/** Parses `key[=value][:effect][@seconds]`; the operator is Exists without `=`. */
function toleration(text: string): Toleration {
  const [, key = '', sign, value = '', effect = '', seconds] =
    /^([^=<>:@]*)(?:([=<>])([^:@]*))?(?::([^@]*))?(?:@(.*))?$/.exec(text) ?? [];
  const operator = { '=': 'Equal', '<': 'Lt', '>': 'Gt' }[sign ?? ''] ?? 'Exists';
  return {
    key,
    operator,
    value,
    effect,
    ...(seconds === undefined ? {} : { tolerationSeconds: BigInt(seconds) }),
  };
}

/** Returns each finding as `rule@index`. */
const found = (texts: readonly string[], kind = 'Deployment'): readonly string[] =>
  ineffectiveTolerations(kind, texts.map(toleration)).map(
    ({ rule, toleration: index }) => `${rule}@${index}`,
  );

const DOWN = [`${NODE_NOT_READY}:NoExecute@60`, `${NODE_UNREACHABLE}:NoExecute@60`];

const rows: readonly (readonly [what: string, texts: readonly string[], findings: readonly string[]])[] = [
  ['nothing', [], []],
  ['for ever', ['a:NoExecute', 'b=x:NoSchedule'], []],
  ['everything', [''], []],
  ['finite seconds of a key', ['a:NoExecute@60'], ['replacement-loops@0']],
  ['finite seconds of every key', [':NoExecute@60'], ['replacement-loops@0']],
  ['no seconds', ['a:NoExecute@0'], ['zero-seconds@0']],
  ['negative seconds', ['a:NoExecute@-5'], ['zero-seconds@0']],
  ['the largest int64: for ever', ['a:NoExecute@9223372036854775807'], []],
  ['a wildcard before seconds', [':NoExecute', 'a:NoExecute@60'], ['shadowed@1']],
  ['seconds before a wildcard', ['a:NoExecute@60', ':NoExecute'], ['replacement-loops@0']],
  ['a value behind its key', ['a:NoExecute', 'a=x:NoExecute@60'], ['shadowed@1']],
  ['a value before its key', ['a=x:NoExecute@60', 'a:NoExecute'], ['replacement-loops@0']],
  ['another value', ['a=x:NoExecute', 'a=y:NoExecute@60'], ['replacement-loops@1']],
  ['the same twice: it makes no difference', ['a:NoExecute', 'a:NoExecute'], []],
  ['NoSchedule before NoExecute', ['a:NoSchedule', 'a:NoExecute@60'], ['replacement-loops@1']],
  ['NoExecute behind all effects', ['a', 'a:NoExecute@60'], ['shadowed@1']],
  ['seconds while the node is down', DOWN, []],
  [
    'the same, and its NoSchedule taint',
    [...DOWN, ':NoSchedule'],
    ['replacement-loops@0', 'replacement-loops@1'],
  ],
  ['every NoSchedule taint', [':NoSchedule'], ['replacement-loops@0']],
  [
    'an unready node for ever, but none out of reach',
    [NODE_NOT_READY, `${NODE_UNREACHABLE}:NoSchedule`],
    ['replacement-loops@1'],
  ],
];

describe('ineffective tolerations', () => {
  for (const [what, texts, findings] of rows) {
    test(`${what}: ${findings.join(', ') || 'nothing'}`, () => assert.deepEqual(found(texts), findings));
  }

  test('a wider comparison shadows a narrower one', () => {
    assert.deepEqual(found(['a<5:NoExecute']), []);
    assert.deepEqual(found(['a<9:NoExecute', 'a<5:NoExecute@60']), ['shadowed@1']);
    assert.deepEqual(found(['a<5:NoExecute', 'a<9:NoExecute@60']), ['replacement-loops@1']);
    assert.deepEqual(found(['a>3:NoExecute', 'a<5:NoExecute@60']), ['replacement-loops@1']);
  });

  test('a DaemonSet replaces the seconds of nodes that are down, whatever they are', () => {
    const DaemonSet = (...texts: readonly string[]) => found(texts, 'DaemonSet');
    for (const seconds of [0, -1, 60])
      assert.deepEqual(DaemonSet(`${NODE_NOT_READY}:NoExecute@${seconds}`), ['replaced@0']);
    assert.deepEqual(DaemonSet(`${NODE_UNREACHABLE}:NoExecute`, ':NoSchedule'), []);
    // This one stays beside that of the DaemonSet controller, and comes first.
    assert.deepEqual(DaemonSet(`${NODE_UNREACHABLE}=:NoExecute@0`), ['zero-seconds@0']);
    assert.deepEqual(DaemonSet('a:NoExecute@60'), ['replacement-loops@0']);
  });

  test('names the toleration in each finding', () => {
    const [finding] = ineffectiveTolerations('Deployment', [toleration('a=x:NoExecute@0')]);
    assert.match(finding?.message ?? '', /^tolerations\[0\] \(a=x:NoExecute for 0s\) lasts 0s.*\.$/);
  });
});

const any: fc.Arbitrary<Toleration> = fc.record(
  {
    key: fc.constantFrom('a', 'b', ''),
    operator: fc.constantFrom('Exists', 'Equal', 'Lt', 'Gt'),
    value: fc.constantFrom('', 'x', '3', '5'),
    effect: fc.constantFrom('NoExecute', 'NoExecute', 'NoSchedule', ''),
    tolerationSeconds: fc.integer({ min: -1, max: 3 }).map(BigInt),
  },
  { requiredKeys: ['operator'] },
);
const taints = fc.record({
  key: fc.constantFrom('a', 'b', 'c'),
  value: fc.constantFrom('', 'x', '2', '4', '9'),
  effect: fc.constant('NoExecute'),
  since: fc.constant(0),
});

test('a shadowed toleration changes no deadline', () => {
  fc.assert(
    fc.property(fc.array(any, { maxLength: 4 }), taints, (tolerations, taint) => {
      const matching = { comparisonOperators: true };
      const findings = ineffectiveTolerations('Deployment', tolerations);
      const shadowed = new Set(
        findings.filter(({ rule }) => rule === 'shadowed').map(({ toleration: index }) => index),
      );
      const left = tolerations.filter((_, index) => !shadowed.has(index));
      const at = (list: readonly Toleration[]) => deadline(list, [taint], 0, matching)?.atMs;
      assert.equal(at(left), at(tolerations));
    }),
  );
});
