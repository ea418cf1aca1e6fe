import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ClusterFaults } from '#shared/engine/watch/cluster-faults.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { FAULT_TYPES, faultsSchema, MAX_FAULT_TEXT, MAX_FAULTS } from '#shared/state/fault.ts';

function bench() {
  const clock = { at: 1_000, now: () => clock.at };
  return { clock, faults: new ClusterFaults(clock) };
}

const LISTS = { type: 'list-failing', resource: 'pods' } as const;

describe('the faults of a cluster', () => {
  test('begin with the first error, report the last error with its status, and end', () => {
    const { clock, faults } = bench();
    faults.begin(LISTS, new ApiError('the connection was refused', 0));
    assert.deepEqual(faults.list, [{ ...LISTS, since: 1_000, error: 'the connection was refused' }]);
    clock.at = 2_000;
    faults.begin(LISTS, new ApiError('Cannot list pods', 403));
    assert.deepEqual(faults.list, [{ ...LISTS, since: 1_000, error: 'Cannot list pods', status: 403 }]);
    faults.end(LISTS);
    assert.deepEqual(faults.list, []);
    clock.at = 3_000;
    faults.begin(LISTS, new Error('again'));
    assert.deepEqual(faults.list, [{ ...LISTS, since: 3_000, error: 'again' }]);
  });

  test('end when every reporter has ended them', () => {
    const { faults } = bench();
    for (const by of ['n1', 'n2', 'n1']) faults.begin(LISTS, new Error('no'), { by });
    faults.end(LISTS, 'n1');
    faults.end(LISTS, 'n3');
    faults.end({ ...LISTS, resource: 'nodes' }, 'n2');
    assert.equal(faults.list.length, 1);
    faults.end(LISTS, 'n2');
    assert.deepEqual(faults.list, []);
  });

  test('end a while after the last report where no reporter ends them', () => {
    const { clock, faults } = bench();
    const kind = { type: 'built-in-evicts' } as const;
    faults.begin(kind, 'first', { lastsMs: 100 });
    clock.at = 1_099;
    faults.begin(kind, 'second', { lastsMs: 100 });
    clock.at = 1_198;
    assert.deepEqual(faults.list, [{ ...kind, since: 1_000, error: 'second', count: 2 }]);
    clock.at = 1_199;
    assert.deepEqual(faults.list, []);
    faults.begin(kind, 'third', { lastsMs: 100 });
    assert.deepEqual(faults.list, [{ ...kind, since: 1_199, error: 'third', count: 1 }]);
  });

  test('are listed by urgency, each in one shortened line, up to the limit of a lease', () => {
    const { faults } = bench();
    for (const type of FAULT_TYPES.toReversed()) {
      faults.begin({ type, resource: 'nodes' }, `${'x'.repeat(400)}\n`);
      faults.begin({ type, resource: 'pods' }, 'a\u001b[2Jb');
    }
    const { list } = faults;
    assert.equal(list.length, MAX_FAULTS);
    assert.deepEqual(
      list.map(({ type }) => type),
      FAULT_TYPES.slice(0, MAX_FAULTS / 2).flatMap((type) => [type, type]),
    );
    for (const { error } of list) assert.match(error, /^(x{299}…|a\\u001b\[2Jb)$/);
    assert.ok(list.every(({ error }) => error.length <= MAX_FAULT_TEXT));
  });
});

test('ignores faults that only a newer release defines', () => {
  const known = { type: 'queue-failing', since: 1, error: 'no' } as const;
  assert.deepEqual(faultsSchema.parse([{ ...known, type: 'new' }, { ...known, more: 1 }, 'x']), [known]);
});
