import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { podUid } from '#shared/eviction/identity.ts';
import type { ForecastPod } from '#shared/explain/forecast.ts';
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

const numbered = (index: number, fields: Partial<ForecastPod> = {}): ForecastPod =>
  aPod({ uid: podUid(`u${index}`), name: `web-${index}`, ...fields });

/** Pods that tolerate the taint for 60 s, for 120 s, not at all, and indefinitely. */
const PODS = [
  numbered(0),
  numbered(1, { tolerations: [tolerating('a', 120)] }),
  numbered(2, { tolerations: [], owner: { kind: 'StatefulSet', name: 'db' } }),
  numbered(3, { tolerations: [{ operator: 'Exists' }], owner: { kind: 'DaemonSet', name: 'agent' } }),
];
const TAINTS = [since(80)];

const service = {
  rules: known(rules),
  partition: known(stored(TAINTS)),
  history: known([]),
  disconnection: known(undefined),
};
const question = (fields: Partial<NodeQuestion> = {}): NodeQuestion => ({
  now: at(NOW),
  cluster: ref.cluster,
  node: ref.node,
  live: known({ taints: [{ key: 'a', effect: 'NoExecute' }] }),
  pods: known(PODS),
  workloads: known(new Map()),
  budgets: known(new Map()),
  service,
  builtIn: known({ state: 'off', evidence: 'its flags' }),
  matching: rules.matching,
  ...fields,
});
const line = (nodeCase: NodeQuestion): string =>
  nodeHeadline(explainNode(nodeCase), (moment) => {
    assert.ok(Number.isFinite(moment), 'there is no such time');
    return `${(moment - at(0)) / 1000}s`;
  });
const ruledBy = (...given: Parameters<typeof ruled>) => ({
  service: { ...service, rules: known(ruled(...given)) },
});
const disconnected = { service: { ...service, disconnection: known({ since: at(40) }) } };
const untainted = { live: known({ taints: [] }) };
const deleted = { live: known({ taints: undefined }) };
const stops = [{ actor: 'anna', at: at(90), reason: 'an incident', scope: 'cluster' } as const];
const trips = [{ scope: 'customTaints', trippedAt: at(90), nodes: 9, outOf: 30 } as const];

/** The cases of the first lines in `node-headlines.txt`. */
const unseen = known({ state: 'unknown', evidence: '' } as const);

const HEADLINES: Readonly<Record<string, NodeQuestion>> = {
  'a tainted node': question(),
  'an untainted node': question(untainted),
  'no node': question({ ...deleted, pods: known([]) }),
  'a deleted node': question(deleted),
  'observe mode': question(ruledBy({ mode: 'observe' })),
  'a trip in observe mode': question(ruledBy({ mode: 'observe' }, { trips })),
  'a stop in observe mode': question(ruledBy({ mode: 'observe' }, { stops })),
  'a stop where the built-in controller evicts': question({
    ...ruledBy({}, { stops }),
    builtIn: known({ state: 'on', evidence: 'its flags' }),
  }),
  'a stop where the built-in controller is unknown': question({ ...ruledBy({}, { stops }), builtIn: unseen }),
  'observe mode where the built-in controller is unknown': question({
    ...ruledBy({ mode: 'observe' }),
    builtIn: unseen,
  }),
  'a rate that allows the last eviction later': question(ruledBy({ evictionRate: 0.01 })),
  'a limit for workloads': question(ruledBy({ maxEvictionsPerWorkload: { count: 1, windowMs: 60_000 } })),
  'a terminating pod': question({ pods: known([numbered(0, { terminating: true, disrupted: true })]) }),
  'a disconnected cluster': question(disconnected),
  'an untainted node of a disconnected cluster': question({ ...disconnected, ...untainted }),
};

test('the first line is as recorded', (t) => {
  const text = Object.entries(HEADLINES).map(([name, nodeCase]) => `${name}: ${line(nodeCase)}\n`);
  t.assert.fileSnapshot(text.join(''), join(import.meta.dirname, 'node-headlines.txt'), {
    serializers: [String],
  });
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
  const [a, x] = [
    { key: 'a', effect: 'NoExecute' },
    { key: 'x', effect: 'NoSchedule' },
  ];
  assert.deepEqual(explainNode(question({ live: known({ taints: [x, a] }) })).taints, [
    { taint: a, evicts: 'yes', since: at(80), known: 'added' },
    { taint: x, evicts: 'no' },
  ]);
});

test('lists a gate of several pods once, with its actor and reason', () => {
  const target = { kind: 'node', node: ref.node } as const;
  const hold = { id: 'h1', actor: 'anna', at: at(90), reason: 'a backup', target };
  const { gates, workloads } = explainNode(question(ruledBy({}, { holds: [hold] })));
  assert.deepEqual(gates, [
    {
      by: { kind: 'hold', id: 'h1' },
      act: { actor: 'anna', at: at(90), reason: 'a backup' },
      target,
    },
  ]);
  assert.deepEqual(
    workloads.map(({ held }) => held),
    [[], [{ by: ['hold'], pods: 1 }], [{ by: ['hold'], pods: 2 }]],
  );
});

test('leaves the outcome of due pods unknown where the rules cannot be read', () => {
  const answer = explainNode(question({ service: { ...service, rules: { unknown: 'the table is away' } } }));
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
  const nodeCase = question({
    service: { ...service, partition: known(failing) },
    pods: known(PODS.slice(0, 2)),
  });
  assert.match(
    line(nodeCase),
    /: 1 pod will be evicted .*; 1 pod could not be evicted and is retried \(admission webhook "x" denied the request\)\.$/,
  );
  const [workload] = explainNode(nodeCase).workloads;
  assert.deepEqual([workload?.evict.pods, workload?.held], [1, [{ by: ['retrying'], pods: 1 }]]);
});
