import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '#shared/eviction/identity.ts';
import type { AskedPod } from '#shared/explain/forecast.ts';
import { nodeHeadline } from '#shared/explain/headline.ts';
import { known } from '#shared/explain/known.ts';
import { explainNode, type NodeQuestion } from '#shared/explain/node.ts';
import {
  after,
  at,
  nodeDelta,
  pod,
  recordIn,
  ref,
  rules,
  taint,
  tolerating,
} from '#test/unit/eviction/builders.ts';
import { aPod, NOW, ruled, since, stored } from './builders.ts';

const numbered = (index: number, fields: Partial<AskedPod> = {}): AskedPod =>
  aPod({ uid: podUid(`u${index}`), name: `web-${index}`, ...fields });

/** Pods that tolerate the taint for 60 s, for 120 s, not at all, and indefinitely. */
const PODS = [
  numbered(0),
  numbered(1, { tolerations: [tolerating('a', 120)] }),
  numbered(2, { tolerations: [], owner: { kind: 'StatefulSet', name: 'db' } }),
  numbered(3, { tolerations: [{ operator: 'Exists' }], owner: { kind: 'DaemonSet', name: 'agent' } }),
];
const TAINTS = [since(80)];

const question = (fields: Partial<NodeQuestion> = {}): NodeQuestion => ({
  ...{ now: at(NOW), cluster: ref.cluster, node: ref.node },
  live: known({ taints: [{ key: 'a', effect: 'NoExecute' }] }),
  pods: known(PODS),
  workloads: known(new Map()),
  budgets: known(new Map()),
  service: {
    rules: known(rules),
    partition: known(stored(TAINTS)),
    history: known([]),
    deaf: known(undefined),
  },
  builtIn: known({ state: 'off', evidence: 'its flags' }),
  matching: rules.matching,
  ...fields,
});
const line = (asked: NodeQuestion): string =>
  nodeHeadline(explainNode(asked), (moment) => `${(moment - at(0)) / 1000}s`);
const ruledBy = (given: Parameters<typeof ruled>[0], more: Parameters<typeof ruled>[1] = {}) => ({
  service: {
    ...{
      rules: known(ruled(given, more)),
      partition: known(stored(TAINTS)),
      history: known([]),
      deaf: known(undefined),
    },
  },
});
const disconnectedSince = (second: number): Partial<NodeQuestion> => ({
  service: {
    ...{ rules: known(rules), partition: known(stored(TAINTS)), history: known([]) },
    deaf: known({ since: at(second) }),
  },
});

test('the first line counts the pods that are evicted, kept, terminating and staying', () => {
  const cases: readonly (readonly [NodeQuestion, string])[] = [
    [question(), 'n1 has a:NoExecute: 3 pods will be evicted by 200s, the first now; 1 pod stays.'],
    [question({ live: known({ taints: [] }) }), 'n1 has no taint that evicts: 4 pods stay.'],
    [
      question({ live: known({ taints: undefined }), pods: known([]) }),
      'n1 does not exist in cluster c1, and has no pods.',
    ],
    [
      question({ live: known({ taints: undefined }) }),
      'n1 is deleted, and had a:NoExecute: 3 pods will be evicted by 200s, the first now; 1 pod stays.',
    ],
    [
      question(ruledBy({ mode: 'observe' })),
      'n1 has a:NoExecute: 3 pods would be evicted in enforce mode; 1 pod stays.',
    ],
    [
      question(
        ruledBy(
          { mode: 'observe' },
          { trips: [{ scope: 'people', trippedAt: at(90), nodes: 9, outOf: 30 }] },
        ),
      ),
      'n1 has a:NoExecute: 3 pods are kept; 1 pod stays.',
    ],
    [
      question(
        ruledBy(
          { mode: 'observe' },
          { stops: [{ who: 'anna', at: at(90), why: 'an incident', scope: 'cluster' }] },
        ),
      ),
      'n1 has a:NoExecute: 3 pods are kept; 1 pod stays.',
    ],
    [
      question({
        ...ruledBy({}, { stops: [{ who: 'anna', at: at(90), why: 'an incident', scope: 'cluster' }] }),
        builtIn: known({ state: 'on', evidence: 'its flags' }),
      }),
      'n1 has a:NoExecute: 3 pods are kept; 1 pod stays. But the built-in controller is enabled, and evicts 3 of them sooner, the first at 80s.',
    ],
    [
      question({ pods: known([numbered(0, { terminating: true, disrupted: true })]) }),
      'n1 has a:NoExecute: 1 pod is terminating.',
    ],
    [
      question(disconnectedSince(40)),
      'n1 has a:NoExecute: 3 pods will be evicted by 200s, the first now; 1 pod stays. But no relay has been connected to cluster c1 since 40s: 3 evictions are not scheduled until a relay connects.',
    ],
    [
      question({ ...disconnectedSince(40), live: known({ taints: [] }) }),
      'n1 has no taint that evicts: 4 pods stay. No relay has been connected to cluster c1 since 40s: changes of nodes and pods are missed.',
    ],
  ];
  for (const [asked, expected] of cases) assert.equal(line(asked), expected);
});

test('lists pods by deadline, grouped by workload', () => {
  const { workloads, pods } = explainNode(question());
  assert.deepEqual(
    pods.map(({ name, outcome }) => [name, outcome.kind]),
    [
      ['web-2', 'evict'],
      ['web-0', 'evict'],
      ['web-1', 'evict'],
      ['web-3', 'keep'],
    ],
  );
  assert.deepEqual(
    workloads.map(({ owner, pods, evict, keep }) => [owner?.name, pods, evict, keep]),
    [
      ['agent', 1, { pods: 0 }, [{ cause: 'tolerated', pods: 1 }]],
      ['db', 1, { pods: 1, firstAt: at(NOW), lastAt: at(NOW) }, []],
      ['web-5d4f', 2, { pods: 2, firstAt: at(140), lastAt: at(200) }, []],
    ],
  );
});

test('replaces the owners of pods by their common workload', () => {
  const web = { namespace: 'shop', kind: 'Deployment', name: 'web' };
  const pods = [numbered(0), numbered(1, { owner: { kind: 'ReplicaSet', name: 'web-77f9' } })];
  const { workloads } = explainNode(
    question({ pods: known(pods), workloads: known(new Map(pods.map(({ uid }) => [uid, web]))) }),
  );
  assert.deepEqual(
    workloads.map(({ owner, pods: count }) => [owner, count]),
    [[{ kind: 'Deployment', name: 'web' }, 2]],
  );
});

test('lists taints with their time, and taints that do not evict without a time', () => {
  const { taints } = explainNode(
    question({
      live: known({
        taints: [
          { key: 'x', effect: 'NoSchedule' },
          { key: 'a', effect: 'NoExecute' },
        ],
      }),
    }),
  );
  assert.deepEqual(taints, [
    { taint: { key: 'a', effect: 'NoExecute' }, evicts: 'yes', since: at(80), known: 'added' },
    { taint: { key: 'x', effect: 'NoSchedule' }, evicts: 'no' },
  ]);
});

test('lists a gate of several pods once, with its actor and reason', () => {
  const hold = {
    id: 'h1',
    who: 'anna',
    at: at(90),
    why: 'a backup',
    target: { kind: 'node', node: ref.node },
  } as const;
  const { gates, workloads } = explainNode(question(ruledBy({}, { holds: [hold] })));
  assert.deepEqual(gates, [
    {
      by: { kind: 'hold', id: 'h1' },
      act: { actor: 'anna', at: at(90), reason: 'a backup' },
      target: hold.target,
    },
  ]);
  assert.deepEqual(
    workloads.map(({ held }) => held),
    [[], [{ by: ['hold'], pods: 1 }], [{ by: ['hold'], pods: 2 }]],
  );
});

test('leaves the outcome of due pods unknown where the rules cannot be read', () => {
  const answer = explainNode(
    question({
      service: {
        rules: { unknown: 'the table is away' },
        partition: known(stored(TAINTS)),
        history: known([]),
        deaf: known(undefined),
      },
    }),
  );
  assert.deepEqual(
    answer.pods.map(({ outcome }) => outcome.kind),
    ['unknown', 'unknown', 'unknown', 'keep'],
  );
  assert.deepEqual(answer.unknown, [{ what: 'rules', reason: 'the table is away' }]);
});

test('does not promise the eviction of pods that fail, and tells why', () => {
  const error = 'admission webhook "x" denied the request';
  const partition = after(nodeDelta(1, { taints: [taint('a', 0)], pods: [pod('u0', { name: 'web-0' })] }));
  const record = recordIn(partition, 'u0');
  assert.ok(record && partition.node);
  const retry = { attempts: 3, nextTryAt: at(130), since: at(61), error, everything: false };
  const failing = {
    ...partition,
    node: { ...partition.node, retry },
    scheduled: new Map([[record.uid, { ...record, failure: { since: at(61), error } }]]),
  };
  const { service } = question();
  assert.ok(service);
  const asked = question({
    service: { ...service, partition: known(failing) },
    pods: known(PODS.slice(0, 2)),
  });
  assert.match(
    line(asked),
    /: 1 pod will be evicted .*; 1 pod could not be evicted and is retried \(admission webhook "x" denied the request\)\.$/,
  );
  const [workload] = explainNode(asked).workloads;
  assert.deepEqual([workload?.evict.pods, workload?.held], [1, [{ by: ['retrying'], pods: 1 }]]);
});
