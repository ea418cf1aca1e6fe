import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Taint, Toleration } from '#shared/taints/taint.ts';
import { tolerationProblems } from '#shared/taints/tolerations.ts';
import { type Problem, taintProblems } from '#shared/taints/validation.ts';
import { tolerationsUpdateProblems } from '#simulator/objects/toleration-updates.ts';
import * as arbitrary from '#test/unit/taints/arbitraries.ts';

const gateOn = { comparisonOperators: true };
const gateOff = { comparisonOperators: false };

const errors = (problems: readonly Problem[]): readonly string[] =>
  [...new Set(problems.map(({ field, type }) => `${field} ${type}`))].sort();

const DNS_253 = `${'a'.repeat(63)}.${'a'.repeat(63)}.${'a'.repeat(63)}.${'a'.repeat(61)}`;

describe('a key', () => {
  const good = [
    'k',
    'a.b-c_d',
    'A9',
    'example.com/gpu',
    'a/k',
    'a.b/k',
    'a'.repeat(63),
    `${DNS_253}/k`,
    `${'a'.repeat(70)}.b/k`,
  ];
  for (const key of good) {
    test(`may be ${key.slice(0, 20)} (${key.length} characters)`, () => {
      assert.deepEqual(taintProblems([{ key, effect: 'NoExecute' }]), []);
      assert.deepEqual(tolerationProblems([{ key, operator: 'Exists' }], gateOff), []);
    });
  }

  const bad = [
    ...['a b', '-a', 'a-', '_', '.', 'é', 'a\n', 'nospecialchars^=@', 'a'.repeat(64)],
    ...['a/b/c', '/a', 'a/', '/', 'Ex.com/a', 'a_b/k', 'a..b/k', 'a.-b/k', `a${DNS_253}/k`],
  ];
  for (const key of bad) {
    test(`may not be ${JSON.stringify(key.slice(0, 20))} (${key.length} characters)`, () => {
      assert.deepEqual(errors(taintProblems([{ key, effect: 'NoExecute' }])), [
        'taints[0].key FieldValueInvalid',
      ]);
      const toleration = { key, operator: 'Exists' };
      assert.deepEqual(errors(tolerationProblems([toleration], gateOff)), [
        'tolerations[0].key FieldValueInvalid',
      ]);
    });
  }
});

describe('a list of taints', () => {
  test('may repeat a key with another effect', () => {
    const taints = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'].map((effect) => ({ key: 'k', effect }));
    assert.deepEqual(taintProblems(taints), []);
  });

  test('reports every later taint that repeats a key and effect', () => {
    const taints = ['1', '2', '3'].map((value) => ({ key: 'k', value, effect: 'NoExecute' }));
    const expected = ['taints[1] FieldValueDuplicate', 'taints[2] FieldValueDuplicate'];
    assert.deepEqual(errors(taintProblems(taints)), expected);
  });

  test('rejects values with a sign, so that Lt and Gt never compare a negative taint value', () => {
    const problems = taintProblems([{ key: 'k', value: '-5', effect: 'NoExecute' }]);
    assert.deepEqual(errors(problems), ['taints[0].value FieldValueInvalid']);
  });

  test('reports every fault', () => {
    const taints: readonly Taint[] = [
      { key: '', effect: '' },
      { key: 'k', value: 'a/b', effect: 'noexecute' },
      { key: '', effect: '' },
    ];
    assert.deepEqual(errors(taintProblems(taints)), [
      'taints[0].effect FieldValueRequired',
      'taints[0].key FieldValueInvalid',
      'taints[1].effect FieldValueNotSupported',
      'taints[1].value FieldValueInvalid',
      'taints[2] FieldValueDuplicate',
      'taints[2].effect FieldValueRequired',
      'taints[2].key FieldValueInvalid',
    ]);
  });
});

const OPERATOR = 'tolerations[0].operator';
const NOT_SUPPORTED = [`${OPERATOR} FieldValueNotSupported`];
const INVALID = [`${OPERATOR} FieldValueInvalid`];
const VALUE = ['tolerations[0].value FieldValueInvalid'];
const EFFECT = ['tolerations[0].effect FieldValueInvalid'];
const k = (fields: Toleration): Toleration => ({ key: 'k', ...fields });

/**
 * The cases of upstream's `TestValidatePod` and `TestNumericTolerationsWithFeatureGate`: a toleration, and its
 * problems with the gate on and off.
 */
const ROWS: Readonly<Record<string, readonly [Toleration, on: readonly string[], off?: readonly string[]]>> =
  {
    'every key with Exists is fine': [{ operator: 'Exists' }, []],
    'negative seconds are fine': [k({ operator: 'Exists', effect: 'NoExecute', tolerationSeconds: -2n }), []],
    'every key needs Exists, also when no operator is given': [{ value: 'v' }, INVALID],
    'no other operator is supported, for any value': [k({ operator: 'In', value: 'a/b' }), NOT_SUPPORTED],
    'another operator without key is two problems': [{ operator: 'exists' }, [...INVALID, ...NOT_SUPPORTED]],
    'an unknown effect is not supported': [
      { operator: 'Exists', effect: 'noexecute' },
      ['tolerations[0].effect FieldValueNotSupported'],
    ],
    'Lt takes a negative number': [k({ operator: 'Lt', value: '-100' }), [], NOT_SUPPORTED],
    'Gt takes no text': [k({ operator: 'Gt', value: 'high' }), VALUE, NOT_SUPPORTED],
    'Gt needs a value': [k({ operator: 'Gt' }), VALUE, NOT_SUPPORTED],
    'seconds need NoExecute': [
      k({ operator: 'Exists', effect: 'NoSchedule', tolerationSeconds: 20n }),
      EFFECT,
    ],
  };

for (const [name, [toleration, on, off = on]] of Object.entries(ROWS)) {
  test(name, () => {
    assert.deepEqual(errors(tolerationProblems([toleration], gateOn)), on);
    assert.deepEqual(errors(tolerationProblems([toleration], gateOff)), off);
  });
}

test('allows the same toleration twice in a list', () => {
  const toleration = { key: 'k', operator: 'Exists' };
  assert.deepEqual(tolerationProblems([toleration, toleration], gateOff), []);
});

test('allows a value of 63 characters, and rejects 64', () => {
  const withValue = (length: number) => [{ key: 'k', value: 'v'.repeat(length), effect: 'NoExecute' }];
  assert.deepEqual(taintProblems(withValue(63)), []);
  assert.deepEqual(errors(taintProblems(withValue(64))), ['taints[0].value FieldValueInvalid']);
});

describe('a message states the fault and the remedy', () => {
  const messages = (problems: readonly Problem[]) => problems.map(({ message }) => message);
  const NAME = "use letters, digits, '-', '_' and '.', with a letter or digit at both ends";

  for (const [key, ...faults] of [
    ['a/b/c', "must be a name with at most one prefix before a '/', for example example.com/gpu"],
    ['', 'must have a name: write one, for example maintenance'],
    ['/a', "has nothing before the '/': write a DNS subdomain there, or drop the '/'"],
    [
      `${'é'.repeat(254)}/${'é'.repeat(64)}`,
      "must have at most 253 characters before the '/': shorten the prefix",
      "must have a DNS subdomain before the '/': use lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part",
      'must have at most 63 characters in its name: shorten it',
      `has a character in its name that is not allowed: ${NAME}`,
    ],
  ] as const) {
    test(`for a key like ${JSON.stringify(key.slice(0, 9))}`, () => {
      assert.deepEqual(
        messages(taintProblems([{ key, effect: 'NoExecute' }])),
        faults.map((fault) => `taints[0].key ${fault}.`),
      );
    });
  }

  test('for taints', () => {
    const taints = [
      { key: 'k', value: 'é'.repeat(64), effect: '' },
      { key: 'k', effect: '' },
      { key: 'j', effect: 'noexecute' },
    ];
    assert.deepEqual(messages(taintProblems(taints)), [
      'taints[0].value must have at most 63 characters: shorten it.',
      `taints[0].value has a character that is not allowed: ${NAME}.`,
      'taints[0].effect is missing: write one of NoSchedule, PreferNoSchedule, NoExecute.',
      'taints[1].effect is missing: write one of NoSchedule, PreferNoSchedule, NoExecute.',
      'taints[1] repeats the key and effect of an earlier taint: keep one of them.',
      'taints[2].effect must be one of NoSchedule, PreferNoSchedule, NoExecute, spelled like that.',
    ]);
  });

  const SECONDS = "tolerations[0].effect must be 'NoExecute' when `tolerationSeconds` is set";
  const NUMBER = 'must be a 64-bit integer without leading zeros or plus sign, such as -5';
  const BAD_VALUE = 'tolerations[0].value has a character that is not allowed';
  const rows: readonly (readonly [Toleration, message: string])[] = [
    [{}, `${OPERATOR} must be Exists when \`key\` is empty, which means "match all values and all keys".`],
    [k({ tolerationSeconds: 1n }), `${SECONDS}.`],
    [k({ value: '_' }), `${OPERATOR} needs another value: ${BAD_VALUE}: ${NAME}.`],
    [k({ operator: 'Exists', value: 'v' }), `${OPERATOR} is 'Exists': value must be empty.`],
    [k({ operator: 'Gt', value: 'high' }), `tolerations[0].value ${NUMBER}.`],
    [k({ operator: 'In' }), `${OPERATOR} must be one of Equal, Exists, Lt, Gt, spelled like that.`],
  ];
  for (const [toleration, message] of rows) {
    test(`for a toleration: ${message}`, () => {
      assert.deepEqual(messages(tolerationProblems([toleration], gateOn)), [message]);
    });
  }

  test('for a comparison operator while the gate is off', () => {
    assert.deepEqual(messages(tolerationProblems([{ key: 'k', operator: 'Gt', value: '5' }], gateOff)), [
      `${OPERATOR} Gt needs the feature gate TaintTolerationComparisonOperators: use Equal or Exists.`,
    ]);
  });

  test('for an update of a live pod', () => {
    assert.deepEqual(messages(tolerationsUpdateProblems([], [{ operator: 'Exists' }], gateOff)), [
      'tolerations of a live pod may only be added or change their tolerationSeconds: keep the existing ones.',
    ]);
  });
});

describe('an update of a live pod', () => {
  const old: Toleration = {
    key: 'k',
    operator: 'Equal',
    value: 'v',
    effect: 'NoExecute',
    tolerationSeconds: 10n,
  };
  const forbidden = ['tolerations FieldValueForbidden'];

  test('may add tolerations, change seconds, and merge what differs only in seconds, in any order', () => {
    const updated = [
      { key: 'j', operator: 'Exists' },
      { ...old, tolerationSeconds: 20n },
    ];
    assert.deepEqual(tolerationsUpdateProblems(updated, [old], gateOff), []);
    const { tolerationSeconds: _, ...forEver } = old;
    assert.deepEqual(tolerationsUpdateProblems([forEver], [old], gateOff), []);
    const twice = [old, { ...old, tolerationSeconds: 20n }];
    assert.deepEqual(tolerationsUpdateProblems([old], twice, gateOff), []);
  });

  test('may replace an absent field by an empty field, and the reverse', () => {
    const spelledOut = { key: '', operator: '', value: '', effect: '' };
    const problems = (updated: Toleration, before: Toleration) =>
      errors(tolerationsUpdateProblems([updated], [before], gateOff));
    assert.ok(!problems(spelledOut, {}).includes(`${forbidden}`));
    assert.ok(!problems({}, spelledOut).includes(`${forbidden}`));
  });

  test('may not drop one of several tolerations, and reports dropped tolerations once', () => {
    const both = [old, { ...old, key: 'j' }];
    assert.deepEqual(errors(tolerationsUpdateProblems([old], both, gateOff)), forbidden);
    assert.equal(tolerationsUpdateProblems([], both, gateOff).length, 1);
  });

  for (const change of [{ key: 'j' }, { operator: '' }, { value: 'w' }, { effect: '' }] as const) {
    test(`may not change ${Object.keys(change).join()}`, () => {
      const { tolerationSeconds: _, ...kept } = old;
      assert.deepEqual(
        errors(tolerationsUpdateProblems([{ ...kept, ...change }], [kept], gateOff)),
        forbidden,
      );
    });
  }

  test('reports invalid fields besides forbidden changes', () => {
    const problems = tolerationsUpdateProblems([{ key: 'a b', operator: 'Exists' }], [old], gateOff);
    assert.deepEqual(errors(problems), [
      'tolerations FieldValueForbidden',
      'tolerations[0].key FieldValueInvalid',
    ]);
  });

  test('may keep using Lt and Gt with the gate off, once the pod uses either', () => {
    const comparing = { key: 'k', operator: 'Gt', value: '5' };
    const another = { key: 'j', operator: 'Lt', value: '7' };
    assert.deepEqual(tolerationsUpdateProblems([comparing, another], [comparing], gateOff), []);
    assert.deepEqual(tolerationsUpdateProblems([another, comparing], [another], gateOff), []);
    assert.deepEqual(tolerationsUpdateProblems([comparing, old], [comparing, old], gateOff), []);
    const notSupported = ['tolerations[1].operator FieldValueNotSupported'];
    assert.deepEqual(errors(tolerationsUpdateProblems([old, another], [old], gateOff)), notSupported);
  });
});

test('starts every message with the field, and writes a single sentence', () => {
  const check = ({ field, message }: Problem): void => {
    assert.ok(message.startsWith(`${field} `), message);
    assert.match(message, /^[^\n]+[^.]\.$/);
  };
  fc.assert(
    fc.property(
      fc.array(arbitrary.taint),
      arbitrary.tolerations,
      arbitrary.options,
      (taints, tolerations, gates) => {
        taintProblems(taints).forEach(check);
        tolerationsUpdateProblems(tolerations, tolerations.slice(1), gates).forEach(check);
        tolerationsUpdateProblems([], tolerations, gates).forEach(check);
      },
    ),
  );
});
