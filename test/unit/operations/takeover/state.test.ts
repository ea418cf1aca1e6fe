import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Takeover } from '#shared/kubernetes/api.ts';
import { alarmsOf } from '#shared/operations/takeover/state.ts';

const NOW = Date.UTC(2026, 0, 1);
const takeover = (fields: Partial<Takeover> = {}): Takeover => ({
  resourceVersion: '1',
  keys: ['a'],
  lapseMs: 90_000,
  heartbeat: NOW - 10_000,
  aliveSince: NOW - 600_000,
  ...fields,
});

describe('alarms of a takeover', () => {
  const alarms = (fields: Partial<Takeover>, ...timesAdded: readonly number[]) =>
    alarmsOf(
      takeover(fields),
      timesAdded.map((timeAdded) => ({ node: 'n1', key: 'a', timeAdded })),
      NOW,
    );

  test('are empty while the heartbeat is current, whatever taints are older or have other keys', () => {
    assert.deepEqual(alarms({}, NOW - 700_000), []);
    assert.deepEqual(alarmsOf(takeover(), [{ node: 'n1', key: 'b', timeAdded: NOW }], NOW), []);
  });

  test('report a heartbeat that was never renewed or has expired', () => {
    const { heartbeat: _, aliveSince: __, ...fresh } = takeover();
    assert.match(alarmsOf(fresh, [], NOW)[0] ?? '', /No relay has ever renewed the heartbeat/);
    assert.match(alarms({ heartbeat: NOW - 100_000 })[0] ?? '', /expired 10s ago/);
  });

  test('report a heartbeat in the future', () => {
    assert.match(alarms({ heartbeat: NOW + 120_000 })[0] ?? '', /in the future/);
  });

  test('report the reason of a suspended heartbeat, whether current, expired, or never renewed', () => {
    const withheld = 'a node kept a:NoExecute';
    const why = `The heartbeat is suspended because ${withheld}. The built-in controller evicts`;
    assert.deepEqual(alarms({ withheld }), [`${why} once it expires.`]);
    assert.deepEqual(alarms({ withheld, heartbeat: NOW - 100_000 }), [
      `${why}.`,
      'The heartbeat expired 10s ago. The built-in controller evicts.',
    ]);
    const { heartbeat: _, aliveSince: __, ...fresh } = takeover({ withheld });
    assert.deepEqual(alarmsOf(fresh, [], NOW), [`${why}.`]);
  });

  test('report a taint that the takeover should have kept out', () => {
    assert.match(alarms({}, NOW - 60_000)[0] ?? '', /Node n1 got a:NoExecute despite a current heartbeat/);
  });
});
