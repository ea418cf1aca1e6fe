import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { NodeCase } from '#shared/explain/forecast.ts';
import { known } from '#shared/explain/known.ts';
import { explainPod, type PodCase } from '#shared/explain/pod.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { after, at, nodeDelta, pod, recordIn, taint, tolerating } from '#test/unit/eviction/builders.ts';
import { aCase, aPod, line, ruled, service, since, stored } from './builders.ts';

const UNREACHABLE = since(20, NODE_UNREACHABLE);
const ALIVE = { kind: 'alive', renewedAt: at(95), until: at(135) } as const;
const unreachable = aPod({ tolerations: [tolerating(NODE_UNREACHABLE, 60), tolerating('a', 200)] });

const question = (
  live: Pick<NodeCase['live'], 'life' | 'lifeUnknown'>,
  more: Partial<PodCase> = {},
  taints = [UNREACHABLE],
): PodCase => ({
  ...aCase(taints, {
    pod: known(unreachable),
    service: service({ partition: known(stored(taints)) }),
    ...more,
  }),
  node: known({ taints: taints.map(({ key, effect }) => ({ key, effect })), ...live }),
});

/** The pod of an alive node in a cluster under this policy. */
const underPolicy = (...given: Parameters<typeof ruled>) =>
  question(
    { life: ALIVE },
    { service: service({ rules: known(ruled(...given)), partition: known(stored([UNREACHABLE])) }) },
  );
const NOW_EVICTED = /^shop\/web-0 is being evicted now:/;

const KEPT =
  'shop/web-0 has been due since 100s because it tolerates node.kubernetes.io/unreachable:NoExecute for 1m, but is held by its node, which is alive: its Lease was renewed at 95s, and is read again when it expires.';

const held: EvictionRecord = (() => {
  const pods = [pod('u1', { tolerations: [tolerating(NODE_UNREACHABLE, 60)] })];
  const record = recordIn(after(nodeDelta(20, { taints: [taint(NODE_UNREACHABLE, 20)], pods })));
  assert.ok(record);
  const gate = { ...ALIVE, kind: 'node-alive', revision: 1, guardRevision: 0 } as const;
  return { ...record, held: { by: gate, since: at(82), until: at(135) } };
})();

describe('a pod on an unreachable node', () => {
  test('is held while the node is alive', () => {
    assert.equal(line(question({ life: ALIVE })), KEPT);
    const { gates, release } = explainPod(question({ life: ALIVE }));
    assert.deepEqual(
      gates.map(({ by }) => by),
      [{ ...ALIVE, kind: 'node-alive', revision: 1, guardRevision: 0 }],
    );
    assert.deepEqual(release, ['taintward policy apply -f policy.yaml c1']);
  });

  test('is evicted when the Lease has expired, or where policy does not require an expired Lease', () => {
    assert.match(line(question({ life: { kind: 'lapsed', because: 'expired' } })), NOW_EVICTED);
    assert.match(line(underPolicy({ requireExpiredLease: false })), NOW_EVICTED);
  });

  test('is held by its record where the Lease cannot be read, and the answer lists the Lease as unknown', () => {
    const lifeUnknown = 'leases "n1" is forbidden';
    const partition = known(stored([UNREACHABLE], held));
    const unread = question({ lifeUnknown }, { service: service({ partition }) });
    assert.equal(line(unread), KEPT.replace('100s', '80s'));
    assert.deepEqual(explainPod(unread).unknown, [
      { what: 'whether its node renews its Lease', reason: lifeUnknown },
    ]);
  });

  test('is evicted by its record once the recorded Lease has expired', () => {
    const partition = known(stored([UNREACHABLE], held));
    const later = { ...question({}, { service: service({ partition }) }), now: at(136) };
    assert.match(line(later), /^shop\/web-0 is being evicted now/);
  });

  test('is evicted at the deadline of another taint', () => {
    const answer = line(question({ life: ALIVE }, {}, [UNREACHABLE, since(20, 'a')]));
    assert.match(answer, /; it is held by its node, which is alive: .*, and will be evicted at 220s\.$/);
  });

  test('is held by its node after a stop ends', () => {
    const stop = { scope: 'cluster', actor: 'anna', at: at(0), reason: 'x', until: at(200) } as const;
    assert.match(
      line(underPolicy({}, { stops: [stop] })),
      /but is held by the stop of the cluster \(anna: x\) until 200s, and by its node, which is alive/,
    );
  });

  test('has the deadline of the built-in controller without a service', () => {
    const { service: _service, ...bare } = question({ life: ALIVE, lifeUnknown: 'no' });
    assert.match(line(bare), /^shop\/web-0 must be evicted at 160s at the latest /);
    assert.deepEqual(explainPod(bare).unknown, []);
  });
});
