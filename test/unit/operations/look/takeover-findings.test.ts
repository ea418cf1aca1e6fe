import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Takeover } from '#shared/kubernetes/api.ts';
import { takeoverFindings } from '#shared/operations/look/doctor.ts';
import type { TakeoverState } from '#shared/operations/takeover/state.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const LAPSE_MS = 90_000;

/** A takeover whose heartbeat has this age. */
function atNodes(heartbeatAgeMs: number | undefined, live: Partial<Takeover> = {}): TakeoverState {
  const heartbeat = heartbeatAgeMs === undefined ? {} : { heartbeat: NOW - heartbeatAgeMs };
  const takeover = { resourceVersion: '1', keys: [], lapseMs: LAPSE_MS, ...heartbeat, ...live };
  const faults = { missing: [], changed: [] };
  return {
    now: NOW,
    nodes: { live: takeover, faults },
    alarms: [],
  };
}

const messagesOf = (state: TakeoverState) => takeoverFindings(state).map(({ message }) => message);

describe('the built-in controller does not evict', () => {
  test("while the takeover's heartbeat is valid", () => {
    assert.match(messagesOf(atNodes(LAPSE_MS - 1)).join(), /the built-in controller does not evict/);
  });

  for (const [why, state] of [
    ['has lapsed', atNodes(LAPSE_MS)],
    ['is of the future', atNodes(-LAPSE_MS)],
    ['was never renewed', atNodes(undefined)],
    ['is withheld', atNodes(1, { withheld: 'an eviction is overdue by 1m10s' })],
  ] as const) {
    test(`according to no finding about a heartbeat that ${why}`, () => {
      assert.doesNotMatch(messagesOf(state).join(), /does not evict/);
    });
  }
});
