import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Policy, Rules } from '#shared/eviction/policy.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { StoreError } from '#shared/state/store.ts';
import { ref } from '#test/unit/eviction/builders.ts';
import { LAPSE_MS, type ProbedTakeover, probedTakeover, START } from './probed-takeover.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

const BY_EVICTION_API: Policy['method'] = {
  kind: 'evict',
  timeoutMs: 10 * MINUTE,
  onTimeout: 'delete',
};

const govern = (given: ProbedTakeover['given'], ruled: Partial<Rules>) => {
  given.rules = { ...given.rules, ...ruled };
};

const ACT = { actor: 'anna', at: START, reason: 'because' };

/** Rules by which an operator holds every pod. */
const HELD: readonly [string, Partial<Rules>][] = [
  ['during a stop', { stops: [{ ...ACT, scope: 'fleet' }] }],
  ['during a hold', { holds: [{ ...ACT, id: 'h1', target: { kind: 'node', node: ref.node } }] }],
  [
    'while the guard holds',
    { guardRevision: 1, trips: [{ scope: 'cluster', trippedAt: START, nodes: 9, outOf: 10 }] },
  ],
];

type Obstacle = (takeover: ProbedTakeover) => unknown;
const refusing =
  (part: 'deltas' | 'evict' | 'relay'): Obstacle =>
  (takeover) =>
    takeover.given.refused.add(part);
const failing =
  (fields: Partial<ProbedTakeover['given']>): Obstacle =>
  ({ given }) =>
    Object.assign(given, fields);
const forbidding =
  (isForbidden: (permission: Permission) => boolean): Obstacle =>
  ({ cluster }) => {
    cluster.allows = (permission) => !isForbidden(permission);
  };
const UNKNOWN = new StoreError('it has a field that this release does not know');
const NOT_SENT_ON = /the delta function doesn't send probes on$/;
const NO_ANSWER = /the delta function sends probes on, but evict doesn't answer$/;

/** The obstacles to evictions, and the reason that the relay reports. */
const OBSTACLES: readonly [string, Obstacle, RegExp][] = [
  [
    'the delta function is dead',
    ({ nodeDeltas }) => Object.assign(nodeDeltas, { isDead: true }),
    NOT_SENT_ON,
  ],
  [
    'the queue of node deltas throttles',
    ({ nodeDeltas }) => Object.assign(nodeDeltas, { refuses: true }),
    /^the node-deltas queue rejects probes: throttled$/,
  ],
  ['evict is dead', ({ dueQueue }) => Object.assign(dueQueue, { isDead: true }), NO_ANSWER],
  [
    'the queue of what is due throttles',
    ({ dueQueue }) => Object.assign(dueQueue, { refuses: true }),
    NOT_SENT_ON,
  ],
  ['the delta function cannot read the table', refusing('deltas'), NOT_SENT_ON],
  ['the delta function cannot read the lease', failing({ leaseError: UNKNOWN }), NOT_SENT_ON],
  ['evict cannot write the table', refusing('evict'), NO_ANSWER],
  ['the relay cannot read the table', refusing('relay'), /ProvisionedThroughput/],
  [
    'pods may not be deleted',
    forbidding(({ verb }) => verb === 'delete'),
    /^evict can't evict pods: the credentials lack the permission to delete pods$/,
  ],
  [
    'pods may not be marked',
    forbidding(({ resource }) => resource === 'pods/status'),
    /lack the permission to patch pods\/status$/,
  ],
  [
    'the API server refuses the credentials of evict',
    failing({ refusal: new ApiError('Unauthorized', 401, 'Unauthorized') }),
    /^evict can't evict pods: the cluster can't be reached: .*Unauthorized/,
  ],
  [
    'the rules cannot be read',
    failing({ rulesError: UNKNOWN }),
    /^evict can't evict pods: the cluster's rules can't be read: /,
  ],
  [
    'the Eviction API may not be used although policy does',
    (takeover) => {
      const { given } = takeover;
      govern(given, { policy: { ...given.rules.policy, method: BY_EVICTION_API } });
      forbidding(({ resource }) => resource === 'pods/eviction')(takeover);
    },
    /lack the permission to create pods\/eviction$/,
  ],
];

describe('the heartbeat of a takeover', () => {
  test('is as old as the probe that proves it, and costs one message in each queue', async (context) => {
    const { time, cluster, nodeDeltas, dueQueue, deadLetters, isLetIn, suspensions } =
      probedTakeover(context);
    nodeDeltas.takesMs = 900;
    await time.pass(10 * MINUTE);
    const age = Date.now() - (cluster.takeover?.heartbeat ?? 0);
    assert.ok(age < 25 * SECOND, `${age} ms`);
    assert.equal(isLetIn(), false);
    assert.deepEqual(suspensions(), []);
    assert.ok(Math.abs(nodeDeltas.sent - 28) <= 2, `${nodeDeltas.sent} probes`);
    assert.equal(dueQueue.sent, nodeDeltas.sent);
    assert.deepEqual([nodeDeltas.failed, dueQueue.failed, deadLetters.sent], [0, 0, []]);
  });

  for (const [what, obstruct, reason] of OBSTACLES) {
    test(`stops where ${what}, with this reason, and continues afterwards`, async (context) => {
      const made = probedTakeover(context);
      const { time, cluster, given, nodeDeltas, dueQueue, isLetIn, suspensions } = made;
      await time.pass(30 * SECOND);
      assert.equal(isLetIn(), false);
      obstruct(made);
      await time.pass(LAPSE_MS + 25 * SECOND);
      assert.equal(isLetIn(), true, 'the built-in controller evicts');
      assert.match(suspensions().at(-1) ?? '', reason);
      Object.assign(given, { refusal: undefined, rulesError: undefined, leaseError: undefined });
      given.refused.clear();
      cluster.allows = () => true;
      for (const queue of [nodeDeltas, dueQueue]) {
        queue.refuses = false;
        queue.revive();
      }
      await time.pass(3 * MINUTE);
      assert.equal(isLetIn(), false);
    });
  }

  for (const [what, ruled] of HELD) {
    test(`continues ${what}`, async (context) => {
      const { time, given, isLetIn, suspensions } = probedTakeover(context);
      govern(given, ruled);
      await time.pass(3 * MINUTE);
      assert.equal(isLetIn(), false);
      assert.deepEqual(suspensions(), []);
    });
  }

  test('continues in a storm, in which due messages wait for 40 s', async (context) => {
    const { time, dueQueue, isLetIn } = probedTakeover(context);
    dueQueue.takesMs = 40 * SECOND;
    await time.pass(2 * MINUTE);
    for (let reviews = 0; reviews < 12; reviews++) {
      assert.equal(isLetIn(), false);
      await time.pass(10 * SECOND);
    }
  });

  test('is not renewed in observe mode, without probes', async (context) => {
    const { time, given, nodeDeltas, isLetIn } = probedTakeover(context);
    govern(given, { policy: { ...given.rules.policy, mode: 'observe' } });
    await time.pass(MINUTE);
    assert.deepEqual([isLetIn(), nodeDeltas.sent], [true, 0]);
  });
});

describe('probes', () => {
  test('become rare without answers, so that few become dead letters', async (context) => {
    const { time, nodeDeltas } = probedTakeover(context);
    nodeDeltas.isDead = true;
    await time.pass(30 * MINUTE);
    assert.ok(nodeDeltas.sent <= 15, `${nodeDeltas.sent} probes`);
  });

  test('end also when they fail, and are logged', async (context) => {
    const { time, given, nodeDeltas, dueQueue, log } = probedTakeover(context);
    given.refused.add('deltas');
    await time.pass(MINUTE);
    given.refused.clear();
    given.refused.add('evict');
    await time.pass(MINUTE);
    assert.deepEqual([nodeDeltas.failed, dueQueue.failed], [0, 0]);
    const failures = log.lines.filter(({ event }) => event === 'takeover.probe-failed');
    assert.ok(failures.length > 3);
  });

  test('store only the proof', async (context) => {
    const { time, fake } = probedTakeover(context);
    await time.pass(2 * MINUTE);
    assert.deepEqual(
      [...fake.items()].map((item) => Object.keys(item).sort()),
      [['pk', 'probeSentAt', 'sk', 'ttl']],
    );
  });
});
