import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { NodeDelta } from '#shared/eviction/facts.ts';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import type { Policy, Rules } from '#shared/eviction/policy.ts';
import type { Budget } from '#shared/explain/budgets.ts';
import type { Job } from '#shared/explain/job.ts';
import {
  type Answer,
  type Findings,
  forecastsOf,
  type NodeToTaint,
  type PodThere,
  podsToAsk,
  type Situation,
  whatIf,
} from '#shared/explain/what-if.ts';
import type { LiveTaint, Toleration } from '#shared/taints/taint.ts';
import { at, emptyPartition, planned, ref, rules, tolerating } from '../eviction/builders.ts';

const TAINT = { key: 'a', effect: 'NoExecute' };
const NOW = at(0);
const DEPLOYMENT = { namespace: 'default', kind: 'Deployment', name: 'web' };

const nodeOf = (name: string, taints: readonly LiveTaint[] = []): NodeToTaint => ({
  taints,
  partition: { ...emptyPartition, ref: { ...ref, node: nodeName(name) } },
});

const podOf = (uid: string, fields: Partial<PodThere> = {}): PodThere => ({
  uid: podUid(uid),
  namespace: 'default',
  name: uid,
  node: ref.node,
  podSince: at(-60),
  tolerations: [],
  labels: { app: 'web' },
  owner: { kind: 'ReplicaSet', name: 'web-1' },
  ready: true,
  indexFailures: 0,
  terminating: false,
  disrupted: false,
  ...fields,
});

/** A pod that tolerates the taint for these seconds, or indefinitely. */
const tolerant = (uid: string, seconds?: number) => podOf(uid, { tolerations: [tolerating('a', seconds)] });

const situationOf = (fields: Partial<Situation> = {}): Situation => ({
  now: NOW,
  taint: TAINT,
  nodes: [nodeOf(ref.node)],
  pods: [podOf('u1')],
  rules,
  counts: { cluster: { nodes: 0, outOf: 9 }, zones: new Map(), customTaints: { nodes: 1, outOf: 9 } },
  released: [],
  ...fields,
});

/**
 * Returns the answer in a cluster where all pods with an owner belong to one Deployment with `ready` ready
 * pods.
 */
function answered(
  given: Partial<Situation>,
  {
    ready = 10,
    budgets = [],
    answers = {},
    job,
  }: {
    readonly ready?: number;
    readonly budgets?: readonly Budget[];
    readonly answers?: Readonly<Record<string, Answer>>;
    readonly job?: Job;
  } = {},
) {
  const situation = situationOf(given);
  const owned = situation.pods.filter(({ owner }) => owner);
  const findings: Findings = {
    workloads: new Map(
      owned.map(({ uid, namespace, owner }) => [
        uid,
        owner && owner.kind !== 'ReplicaSet' ? { namespace, ...owner } : DEPLOYMENT,
      ]),
    ),
    jobs: new Map(job ? [['default/Job/j', job]] : []),
    replicas: new Map([['default/Deployment/web', { desired: 10, ready }]]),
    budgets: new Map([['default', budgets]]),
    answers: new Map(Object.entries(answers).map(([uid, answer]) => [podUid(uid), answer])),
  };
  return whatIf(situation, forecastsOf(situation), findings);
}

const byPolicy = (policy: Partial<Policy>): Rules => ({ ...rules, policy: { ...rules.policy, ...policy } });

const ofWeb = (allowed: number): Budget => ({
  name: 'web',
  selector: { matchLabels: { app: 'web' } },
  allowed,
});

describe('workloads of a preview', () => {
  test('split pods into now, later and kept by their tolerations', () => {
    const some = [podOf('now'), tolerant('soon', 30), tolerant('late', 300)];
    const answer = answered({ pods: [...some, tolerant('never'), podOf('leaving', { terminating: true })] });
    assert.deepEqual(answer.workloads, [
      {
        ...DEPLOYMENT,
        pods: 5,
        now: 1,
        later: { pods: 2, firstAt: at(30), lastAt: at(300) },
        keep: [
          { cause: 'tolerated', pods: 1 },
          { cause: 'terminating', pods: 1 },
        ],
        replicas: { desired: 10, ready: 10 },
        together: 2,
      },
    ]);
    assert.deepEqual(answer.breaks, []);
    assert.equal(answer.pace.lastAt, at(300));
  });

  test('keep pods of an indefinite hold, and delay pods of a hold that ends', () => {
    const act = { actor: 'anna', at: NOW, reason: 'because' };
    const target = (name: string) => ({ kind: 'pod', namespace: 'default', name }) as const;
    const holds = [
      { ...act, id: 'h1', target: target('kept') },
      { ...act, id: 'h2', target: target('put-off'), until: at(90) },
    ];
    const { workloads } = answered({ pods: [podOf('kept'), podOf('put-off')], rules: { ...rules, holds } });
    assert.deepEqual(workloads[0]?.keep, [{ cause: 'hold', hold: 'h1', pods: 1 }]);
    assert.deepEqual(workloads[0]?.later, { pods: 1, firstAt: at(90), lastAt: at(90) });
  });

  test('follow the exclusions and the tolerationSeconds of the policy', () => {
    const excluded = answered({ rules: byPolicy({ exclude: [{ namespaces: ['default'] }] }) });
    assert.deepEqual(excluded.workloads[0]?.keep, [{ cause: 'excluded', pods: 1 }]);
    const sooner = byPolicy({ tolerationSecondsOverrides: { a: 5 } });
    const { workloads } = answered({ pods: [tolerant('u1', 300)], rules: sooner });
    assert.equal(workloads[0]?.later.firstAt, at(5));
  });

  test('ignore NoSchedule taints that treatAsNoExecute does not list', () => {
    const taint = { key: 'a', effect: 'NoSchedule' };
    assert.deepEqual(answered({ taint }).workloads[0]?.keep, [{ cause: 'untainted', pods: 1 }]);
    assert.equal(answered({ taint, rules: byPolicy({ treatAsNoExecute: ['a'] }) }).now, 1);
  });

  test('replace a taint of the same key and effect', () => {
    const only: Toleration = { key: 'a', value: 'old', effect: 'NoExecute' };
    const nodes = [nodeOf(ref.node, [{ ...TAINT, value: 'old' }])];
    assert.equal(answered({ nodes, pods: [podOf('u1', { tolerations: [only] })] }).now, 1);
  });
});

describe('disruptions of a preview', () => {
  test('include a workload whose ready pods are all evicted before replacements are ready', () => {
    const kinds = (ready: number, ...pods: readonly PodThere[]) =>
      answered({ pods }, { ready }).breaks.map(({ kind }) => kind);
    assert.deepEqual(kinds(2, podOf('u1'), tolerant('u2', 30)), ['emptied']);
    assert.deepEqual(kinds(3, podOf('u1'), tolerant('u2', 30)), []);
    assert.deepEqual(kinds(2, podOf('u1'), tolerant('u2', 300)), []);
    assert.deepEqual(kinds(1, podOf('u1', { ready: false })), []);
  });

  test('include a bare pod, which no controller replaces, unless it has finished', () => {
    const { owner: _owner, ...bare } = podOf('bare');
    const lost = { kind: 'bare-pod', namespace: 'default', name: 'bare', at: NOW };
    assert.deepEqual(answered({ pods: [bare] }).breaks, [lost]);
    const answer = answered({ pods: [{ ...bare, ready: false, finished: true }] });
    assert.deepEqual([answer.now, answer.breaks], [1, []]);
  });

  test('exclude static pods, and count their mirror pods', () => {
    const { now, mirrors, breaks } = answered({
      pods: [podOf('etcd', { owner: { kind: 'Node', name: 'n1' } })],
    });
    assert.deepEqual([now, mirrors, breaks], [1, 1, []]);
  });

  describe('of a Job', () => {
    const ofJob = (uid: string, fields: Partial<PodThere> = {}) =>
      podOf(uid, { owner: { kind: 'Job', name: 'j' }, ...fields });
    const outcomesOf = (job: Job, ...pods: readonly PodThere[]) =>
      answered({ pods }, { job }).breaks.map((broken) =>
        broken.kind === 'job' ? [broken.job.name, broken.outcome.kind] : [broken.kind],
      );

    test('include it if the failures exceed its backoffLimit', () => {
      const once = { failed: 0, backoffLimit: 1 };
      assert.deepEqual(outcomesOf({ ...once, backoffLimit: 0 }, ofJob('u1')), [['j', 'job-fails']]);
      assert.deepEqual(outcomesOf(once, ofJob('u1')), []);
      assert.deepEqual(outcomesOf({ ...once, failed: 1 }, ofJob('u1')), [['j', 'job-fails']]);
      assert.deepEqual(outcomesOf(once, ofJob('u1'), ofJob('u2')), [['j', 'job-fails']]);
    });

    test('exclude pods that have finished or stay', () => {
      const job = { failed: 0, backoffLimit: 0 };
      const stays = ofJob('u2', { tolerations: [tolerating('a')] });
      assert.deepEqual(outcomesOf(job, ofJob('u1', { ready: false, finished: true }), stays), []);
    });

    test('heed its podFailurePolicy', () => {
      const none = { failed: 0, backoffLimit: 0 };
      const some = { failed: 0, backoffLimit: 6 };
      assert.deepEqual(outcomesOf({ ...none, action: 'Ignore' }, ofJob('u1')), []);
      assert.deepEqual(outcomesOf({ ...none, action: 'Count' }, ofJob('u1')), [['j', 'job-fails']]);
      assert.deepEqual(outcomesOf({ ...some, action: 'FailJob' }, ofJob('u1')), [['j', 'job-fails']]);
      assert.deepEqual(outcomesOf({ ...some, action: 'FailIndex' }, ofJob('u1')), [['j', 'index-fails']]);
    });

    test('include it if an index exceeds backoffLimitPerIndex', () => {
      const job = { failed: 3, backoffLimit: 99, backoffLimitPerIndex: 2 };
      assert.deepEqual(outcomesOf(job, ofJob('u1', { indexFailures: 1 })), []);
      const last = ofJob('u2', { indexFailures: 2 });
      assert.deepEqual(outcomesOf(job, ofJob('u1'), last), [['j', 'index-fails']]);
    });

    test('include it as failing at once if more indexes fail than its maxFailedIndexes', () => {
      const job = { failed: 3, backoffLimit: 99, backoffLimitPerIndex: 2, indexesLeft: 1 };
      const [one, two, other] = [2, 2, 0].map((indexFailures, at) => ofJob(`u${at}`, { indexFailures }));
      assert.ok(one && two && other);
      assert.deepEqual(outcomesOf(job, one, other), [['j', 'index-fails']]);
      assert.deepEqual(outcomesOf(job, one, two), [['j', 'job-fails']]);
      const byPolicy = { ...job, action: 'FailIndex' } as const;
      assert.deepEqual(outcomesOf(byPolicy, other), [['j', 'index-fails']]);
      assert.deepEqual(outcomesOf(byPolicy, one, other), [['j', 'job-fails']]);
    });
  });

  test('include a budget that allows each eviction alone, but not both together', () => {
    const answers = { u1: { kind: 'allowed' }, u2: { kind: 'allowed' } } as const;
    const both = { pods: [podOf('u1'), podOf('u2')] };
    const { budgets, breaks } = answered(both, { budgets: [ofWeb(1)], answers });
    assert.deepEqual(budgets, [
      {
        namespace: 'default',
        name: 'web',
        allowed: 1,
        evicted: 2,
        together: 2,
        blocked: 0,
        source: 'eviction-api',
        breaks: true,
        heeded: false,
      },
    ]);
    assert.deepEqual(
      breaks.map(({ kind }) => kind),
      ['budget'],
    );
  });

  test('compute the answer of a budget from its status when the dry run failed, with the error', () => {
    const answers = { u1: { kind: 'unknown', why: 'forbidden' } } as const;
    const [budget] = answered({}, { budgets: [ofWeb(0)], answers }).budgets;
    assert.deepEqual([budget?.source, budget?.error, budget?.breaks], ['status', 'forbidden', true]);
  });

  test('include a blocked pod that is not ready only where the policy respects budgets', () => {
    const pods = [podOf('u1', { ready: false })];
    const known = { budgets: [ofWeb(0)], answers: { u1: { kind: 'blocked', reason: 'no' } as const } };
    assert.deepEqual(answered({ pods }, known).breaks, []);
    const method = { kind: 'evict', timeoutMs: 60_000, onTimeout: 'delete' } as const;
    const heeding = answered({ pods, rules: byPolicy({ method }) }, known);
    assert.deepEqual(
      heeding.breaks.map((each) => each.kind === 'budget' && [each.budget.heeded, each.budget.reason]),
      [[true, 'no']],
    );
  });

  test('need a dry run only for pods that would be evicted and have a budget', () => {
    const pods = [podOf('u1'), podOf('other', { labels: { app: 'other' } }), tolerant('keep')];
    const situation = situationOf({ pods });
    const dryRun = (budgets: Findings['budgets']) =>
      podsToAsk(situation, forecastsOf(situation), budgets).map(({ uid }) => uid);
    assert.deepEqual(dryRun(new Map([['default', [ofWeb(1)]]])), ['u1']);
    assert.deepEqual(dryRun(new Map()), ['u1', 'other']);
  });

  test('include a tripped guard, which would hold the evictions, and exclude a guard in dry run', () => {
    const customTaints = { nodes: 5, outOf: 9 };
    const counts = { cluster: { nodes: 0, outOf: 9 }, zones: new Map(), customTaints };
    const trip = { scope: 'customTaints', trippedAt: NOW, nodes: 5, total: 9 };
    const { breaks, guarded, now } = answered({ counts });
    assert.deepEqual([breaks, guarded, now], [[{ kind: 'guard', trip }], 1, 1]);
    const guard = { ...rules.policy.guard, dryRun: true };
    const dryRun = answered({ counts, rules: byPolicy({ guard }) });
    assert.deepEqual([dryRun.breaks, dryRun.guard.trips.length, dryRun.guarded], [[], 1, 0]);
  });
});

test('reports the gate that blocks every eviction, and the evictions behind the gate', () => {
  const { gate, now } = answered({ rules: byPolicy({ mode: 'observe' }) });
  assert.deepEqual([gate, now], [{ kind: 'observe' }, 1]);
});

test('spreads evictions by the rate of the cluster', () => {
  const pods = ['u1', 'u2', 'u3', 'u4'].map((uid) => podOf(uid));
  assert.equal(answered({ pods, rules: byPolicy({ evictionRate: 2 }) }).pace.lastAt, at(2));
  const releases = { releaseRate: 1, releaseMs: 3000 };
  for (const policy of [{ releaseRate: 1 }, { releaseRate: 1, evictionRate: 2 }, { evictionRate: 1 }])
    assert.partialDeepStrictEqual(answered({ pods, rules: byPolicy(policy) }).pace, releases);
});

const toleration: fc.Arbitrary<Toleration> = fc.record(
  {
    key: fc.constantFrom('a', 'b', ''),
    operator: fc.constantFrom('Exists', 'Equal'),
    value: fc.constantFrom('', 'x'),
    effect: fc.constantFrom('NoExecute', 'NoSchedule', ''),
    tolerationSeconds: fc.integer({ min: -1, max: 120 }).map(BigInt),
  },
  { requiredKeys: ['key', 'operator'] },
);
const world = fc.record({
  taint: fc.record({
    key: fc.constantFrom('a', 'b'),
    value: fc.constantFrom('', 'x'),
    effect: fc.constantFrom('NoExecute', 'NoExecute', 'NoSchedule'),
  }),
  taints: fc.uniqueArray(
    fc.record({ key: fc.constantFrom('a', 'b', 'c'), effect: fc.constantFrom('NoExecute', 'NoSchedule') }),
    { selector: ({ key, effect }) => `${key}:${effect}`, maxLength: 3 },
  ),
  tolerations: fc.array(fc.array(toleration, { maxLength: 3 }), { maxLength: 6 }),
  treatAsNoExecute: fc.subarray(['a', 'b']),
});

test('predicts the plan that follows when the taint is set', () => {
  fc.assert(
    fc.property(world, ({ taint, taints, tolerations, treatAsNoExecute }) => {
      const ruled = byPolicy({ treatAsNoExecute });
      const pods = tolerations.map((each, index) => podOf(`u${index}`, { tolerations: each }));
      const nodes = [nodeOf(ref.node, taints)];
      const { each, now, later, keep } = answered({ taint, nodes, pods, rules: ruled });
      assert.equal(now + later + keep, pods.length);

      const others = taints.filter(({ key, effect }) => key !== taint.key || effect !== taint.effect);
      const isVirtual = ({ key, effect }: LiveTaint) =>
        effect === 'NoSchedule' &&
        treatAsNoExecute.includes(key) &&
        ![...others, taint].some((other) => other.key === key && other.effect === 'NoExecute');
      const present = [...others, taint].filter((each) => each.effect === 'NoExecute' || isVirtual(each));
      const seen = { known: 'added', seenAt: NOW } as const;
      const delta: NodeDelta = {
        kind: 'node',
        ref,
        version: { epoch: 1, sequence: 1 },
        observedAt: NOW,
        pods,
        wake: false,
        taints: present.map((each) => ({ ...each, ...(isVirtual(each) ? { virtual: true } : {}), ...seen })),
      };
      const { schedule } = planned(emptyPartition, delta, {}, ruled);
      assert.deepEqual(
        each.flatMap(({ uid, outcome }) =>
          outcome.kind === 'evict' ? [[uid, outcome.at, outcome.causes.length]] : [],
        ),
        schedule.map(({ uid, dueAt, causes }) => [uid, dueAt, causes.length]),
      );
    }),
  );
});

test('counts each pod of any cluster once: as now, later or kept, in a single workload', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ node: fc.nat(2), seconds: fc.option(fc.nat(90)), bare: fc.boolean() })),
      fc.boolean(),
      (given, excluded) => {
        const pods = given.map(({ node, seconds, bare }, index) => {
          const { owner, ...pod } = podOf(`u${index}`, { node: nodeName(`n${node}`) });
          const tolerations = seconds === null ? [] : [tolerating('a', seconds)];
          return { ...pod, tolerations, ...(bare || !owner ? {} : { owner }) };
        });
        const exclude = excluded ? [{ labels: { matchLabels: { app: 'web' } } }] : [];
        const nodes = ['n0', 'n1', 'n2'].map((name) => nodeOf(name));
        const answer = answered({ nodes, pods, rules: byPolicy({ exclude }) });
        const sum = (counts: readonly number[]) => counts.reduce((all, count) => all + count, 0);
        assert.equal(answer.now + answer.later + answer.keep, pods.length);
        for (const { now, later, keep, pods: all } of answer.workloads)
          assert.equal(now + later.pods + sum(keep.map((stay) => stay.pods)), all);
        assert.equal(sum(answer.workloads.map((workload) => workload.pods)), pods.length);
      },
    ),
  );
});
