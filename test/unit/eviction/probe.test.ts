import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeDelta, parseDelta } from '#shared/aws/delta-message.ts';
import { plan } from '#shared/eviction/plan.ts';
import { PROBE_NODE, probeDelta, probeOf, probeSentAt, probeTimerAt } from '#shared/eviction/probe.ts';
import { after, at, podGone, ref, rules } from './builders.ts';

const PROBE = { sentAt: at(60), sequence: 3, isTraced: false };

test('a probe is encoded as a delta message', () => {
  for (const isTraced of [false, true]) {
    const probe = { ...PROBE, isTraced };
    assert.deepEqual(probeOf(parseDelta(encodeDelta(probeDelta(ref.cluster, probe)))), probe);
  }
});

test('a release without probes decides nothing by a probe', () => {
  const { decisions, node } = plan(after(), probeDelta(ref.cluster, PROBE), rules, {
    now: at(60),
    leaseEpoch: 1,
  });
  assert.deepEqual([decisions, node], [[], undefined]);
});

test('a deleted pod is never parsed as a probe, also on a node with the name of the probe node', () => {
  assert.equal(probeOf(podGone(1)), undefined);
  assert.equal(probeOf(podGone(1, { ref: { ...ref, node: PROBE_NODE } })), undefined);
});

test('the timer of a probe is due immediately and identifies it, also where the relay’s clock is 30 s ahead', () => {
  assert.ok(probeTimerAt(at(90)) <= at(60));
  assert.equal(probeSentAt(probeTimerAt(at(90))), at(90));
});
