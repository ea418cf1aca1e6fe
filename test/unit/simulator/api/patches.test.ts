import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { jsonPatch, mergePatch } from '#simulator/api/patches.ts';
import { strategicMergePatch } from '#simulator/api/strategic-merge-patch.ts';
import { StatusError } from '#simulator/objects/status.ts';

const refusedWith = (code: number) => (error: unknown) => error instanceof StatusError && error.code === code;

describe('a strategic merge patch of a Deployment', () => {
  const inTemplate = (...containers: readonly object[]) => ({ spec: { template: { spec: { containers } } } });

  test("merges its template's containers by name, and their variables likewise", () => {
    const before = inTemplate({ name: 'a', image: 'a:1', env: [{ name: 'X', value: '1' }] }, { name: 'b' });
    const patch = inTemplate({ name: 'a', image: 'a:2', env: [{ name: 'Y', value: '2' }] });
    const env = [
      { name: 'Y', value: '2' },
      { name: 'X', value: '1' },
    ];
    assert.deepEqual(
      strategicMergePatch(before, patch),
      inTemplate({ name: 'a', image: 'a:2', env }, { name: 'b' }),
    );
  });

  test('keeps only the retained keys of its strategy', () => {
    const before = { spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } } } };
    const patch = { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } };
    assert.deepEqual(strategicMergePatch(before, patch), { spec: { strategy: { type: 'Recreate' } } });
  });

  test('merges lists of strings as sets and removes deleted strings', () => {
    const before = { metadata: { finalizers: ['a', 'b'] } };
    const patch = { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'], finalizers: ['c', 'b'] } };
    assert.deepEqual(strategicMergePatch(before, patch), { metadata: { finalizers: ['b', 'c'] } });
  });
});

describe('a strategic merge patch', () => {
  const conditions = (...types: readonly string[]) => ({
    status: { conditions: types.map((type) => ({ type, status: 'True' })) },
  });
  const typesAfter = (before: object, patch: object): unknown[] => {
    const { status } = strategicMergePatch(before, patch) as ReturnType<typeof conditions>;
    return status.conditions.map(({ type }) => type);
  };

  test('merges conditions by their type and leaves the others alone', () => {
    const ready = { type: 'Ready', status: 'False', reason: 'Why' };
    assert.deepEqual(
      strategicMergePatch(conditions('PodScheduled', 'Ready'), { status: { conditions: [ready] } }),
      { status: { conditions: [{ type: 'PodScheduled', status: 'True' }, ready] } },
    );
  });

  test('puts a new condition in front, as the real server does, and does not modify its input', () => {
    const before = Object.freeze({ status: Object.freeze({ conditions: Object.freeze([]) }) });
    assert.deepEqual(typesAfter(before, conditions('A')), ['A']);
    assert.deepEqual(before, { status: { conditions: [] } });
    assert.deepEqual(typesAfter(conditions('C'), conditions('Z', 'B')), ['Z', 'B', 'C']);
  });

  test('orders by $setElementOrder', () => {
    const order = ['A', 'B', 'C'].map((type) => ({ type }));
    const { status } = conditions('C', 'A');
    const patch = { status: { '$setElementOrder/conditions': order, ...status } };
    assert.deepEqual(typesAfter(conditions('B'), patch), ['A', 'C', 'B']);
  });

  test('deletes an item, or replaces the list, by $patch', () => {
    const deletes = { status: { conditions: [{ type: 'A', $patch: 'delete' }] } };
    assert.deepEqual(typesAfter(conditions('A', 'B'), deletes), ['B']);
    const replaces = { status: { conditions: [{ $patch: 'replace' }, { type: 'C', status: 'True' }] } };
    assert.deepEqual(typesAfter(conditions('A', 'B'), replaces), ['C']);
  });

  test('replaces taints and tolerations as a whole and removes null fields', () => {
    const node = { spec: { taints: [{ key: 'a', effect: 'NoExecute' }], podCIDR: 'x' } };
    const taints = [{ key: 'b', effect: 'NoSchedule' }];
    assert.deepEqual(strategicMergePatch(node, { spec: { taints } }), { spec: { taints, podCIDR: 'x' } });
    assert.deepEqual(strategicMergePatch(node, { spec: { taints: null } }), { spec: { podCIDR: 'x' } });
  });

  test('replaces or deletes an object by $patch', () => {
    const pod = { metadata: { labels: { a: '1' } } };
    const patch = { metadata: { labels: { $patch: 'replace', b: '2' } } };
    assert.deepEqual(strategicMergePatch(pod, patch), { metadata: { labels: { b: '2' } } });
  });

  test('is rejected if it is not an object, lacks a merge key, or uses unknown directives', () => {
    for (const patch of [
      [],
      { status: { conditions: [{ status: 'x' }] } },
      { spec: { $unknown: ['a'] } },
      { spec: { $patch: 'mangle' } },
    ])
      assert.throws(() => strategicMergePatch({}, patch), refusedWith(400));
  });
});

describe('a JSON merge patch (the cases of RFC 7386, appendix A)', () => {
  for (const [target, patch, result] of [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ] as const) {
    test(`${JSON.stringify(target)} with ${JSON.stringify(patch)}`, () => {
      assert.deepEqual(mergePatch(target, patch), result);
    });
  }
});

describe('a JSON patch (RFC 6902)', () => {
  const node = { spec: { taints: [{ key: 'a' }, { key: 'b' }], 'a/b~c': 1 } };
  const { taints } = node.spec;
  for (const [name, patch, result] of [
    ['appends to a list', { op: 'add', path: '/spec/taints/-', value: 'x' }, [...taints, 'x']],
    ['removes', { op: 'remove', path: '/spec/taints/0' }, [{ key: 'b' }]],
    ['tests and goes on', { op: 'test', path: '/spec/a~1b~0c', value: 1 }, taints],
  ] as const) {
    test(name, () => {
      assert.deepEqual(jsonPatch(node, [patch]), { spec: { ...node.spec, taints: result } });
    });
  }

  test('adds and removes fields', () => {
    const patch = [
      { op: 'add', path: '/spec/x', value: { y: [] } },
      { op: 'add', path: '/spec/x/y/0', value: 1 },
      { op: 'remove', path: '/spec/taints' },
    ];
    assert.deepEqual(jsonPatch(node, patch), { spec: { 'a/b~c': 1, x: { y: [1] } } });
  });

  for (const [name, patch] of [
    ['a failed test', { op: 'test', path: '/spec/taints/0/key', value: 'z' }],
    ['removing what is not there', { op: 'remove', path: '/spec/nothing' }],
    ['an index beyond the end', { op: 'add', path: '/spec/taints/3', value: 1 }],
    ['an unknown operation', { op: 'mangle', path: '/spec' }],
    ['an index that is a field of every list', { op: 'replace', path: '/spec/taints/length', value: 0 }],
    ['what every object inherits', { op: 'copy', from: '/spec/toString', path: '/spec/x' }],
    ['a path through __proto__', { op: 'add', path: '/__proto__/polluted', value: 1 }],
    ['a path that is no pointer', { op: 'remove', path: 'spec' }],
  ] as const) {
    test(`rejects ${name} with 422`, () => {
      assert.throws(() => jsonPatch(node, [patch]), refusedWith(422));
    });
  }

  test('rejects a patch that is not a list with 422', () => {
    assert.throws(() => jsonPatch(node, {}), refusedWith(422));
  });

  test('changes a copied value without the original', () => {
    const patch = [
      { op: 'copy', from: '/spec/taints', path: '/spec/copy' },
      { op: 'replace', path: '/spec/copy/0/key', value: 'z' },
    ];
    assert.deepEqual(jsonPatch(node, patch), { spec: { ...node.spec, copy: [{ key: 'z' }, { key: 'b' }] } });
  });

  test('tests and copies 64-bit integers exactly', () => {
    const pod = { seconds: 9223372036854775807n };
    const patch = (value: bigint) => [
      { op: 'test', path: '/seconds', value },
      { op: 'copy', from: '/seconds', path: '/copy' },
    ];
    assert.deepEqual(jsonPatch(pod, patch(9223372036854775807n)), { ...pod, copy: 9223372036854775807n });
    assert.throws(() => jsonPatch(pod, patch(9223372036854775806n)), refusedWith(422));
  });

  test('does not modify its input', () => {
    const before = Object.freeze({ spec: Object.freeze({ taints: Object.freeze([]) }) });
    jsonPatch(before, [{ op: 'add', path: '/spec/taints/-', value: 'x' }]);
    assert.deepEqual(before, { spec: { taints: [] } });
  });
});
