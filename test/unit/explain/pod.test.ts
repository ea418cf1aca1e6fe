import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { defined } from '#shared/defined.ts';
import { BEING_MOVED } from '#shared/eviction/budget.ts';
import { podUid } from '#shared/eviction/identity.ts';
import type { Hold } from '#shared/eviction/policy.ts';
import type { Block, EvictionRecord, NodeState } from '#shared/eviction/records.ts';
import { heldText } from '#shared/eviction/skew.ts';
import type { ForecastPod } from '#shared/explain/forecast.ts';
import { known } from '#shared/explain/known.ts';
import type { PastEntry } from '#shared/explain/past.ts';
import { explainPod, type PodCase } from '#shared/explain/pod.ts';
import { after, at, nodeDelta, pod, recordIn, ref, taint, tolerating } from '#test/unit/eviction/builders.ts';
import { aCase, aPod, line, lineOf, ruled, service, since, stored } from './builders.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const act = { actor: 'anna', at: at(90), reason: 'is being debugged' };
const hold = (fields: Partial<Hold> = {}): Hold => ({
  ...act,
  id: 'h1',
  target: { kind: 'node', node: ref.node },
  ...fields,
});
const governed = (
  given: Parameters<typeof ruled>[0],
  more: Parameters<typeof ruled>[1] = {},
): Partial<PodCase> => ({
  service: service({ rules: known(ruled(given, more)), partition: known(stored([since(80)])) }),
});
/** Pod web-0 is due at second 80; an admission webhook denied its eviction five seconds later. */
const refused = (
  onTimeout: 'delete' | 'fail',
  reason = '429; admission webhook "x" denied the request: not now.',
  blocker: Pick<Block, 'by'> = { by: 'admission' },
  record = recordIn(after(nodeDelta(20, { taints: [taint('a', 20)] }))) as EvictionRecord,
): Partial<PodCase> => {
  const blocked = { since: at(85), nextTryAt: at(103), ...blocker, reason };
  const method = { kind: 'evict', timeoutMs: 60_000, onTimeout } as const;
  const partition = known(stored([since(20)], { ...record, blocked }));
  return { service: service({ rules: known(ruled({ method })), partition }) };
};
const NO_DISRUPTION = '429; The disruption budget web needs 2 healthy pods and has 2 currently.';
const noDisruption = { budgets: known([{ name: 'web', selector: {}, allowed: 0 }]) };
const evicting = (onTimeout: 'delete' | 'fail') =>
  governed({ method: { kind: 'evict', timeoutMs: 60_000, onTimeout } });
const [A, B] = [
  { key: 'a', effect: 'NoExecute' },
  { key: 'b', effect: 'NoExecute' },
];
const X = { key: 'x', effect: 'NoSchedule' };
const on = { builtIn: known({ state: 'on', evidence: 'its flags' } as const) };

const { service: _service, ...bare } = aCase([since(80)], { node: known({ taints: [A], foundAt: at(90) }) });
const entry = (second: number, event: PastEntry['event'], fields: Partial<PastEntry> = {}): PastEntry => ({
  at: at(second),
  node: ref.node,
  uid: podUid('u0'),
  event,
  dueAt: at(60),
  causes: [{ taint: A, since: at(0), known: 'added', toleration: 0, seconds: 60 }],
  ...fields,
});
const gone = (...history: readonly PastEntry[]): PodCase =>
  aCase([], { pod: known(undefined), service: service({ history: known(history) }) });
const failing = (fields: Partial<EvictionRecord>, node: Partial<NodeState> = {}): PodCase => {
  const web0 = pod('u1', { namespace: 'shop', name: 'web-0' });
  const partition = after(nodeDelta(1, { taints: [taint('a', 0)], pods: [web0] }));
  const record = recordIn(partition);
  assert.ok(record && partition.node);
  const failure = { since: at(61), error: 'the webhook refuses' };
  const scheduled = new Map([[record.uid, { ...record, failure, ...fields }]]);
  const facts = { ...partition, scheduled, node: { ...partition.node, ...node } };
  return aCase([since(0)], { service: service({ partition: known(facts) }) });
};
const retry = {
  attempts: 3,
  nextTryAt: at(130),
  since: at(61),
  error: 'the webhook refuses',
  everything: false,
};
const outage = { ...retry, everything: true, error: 'refused', triedAt: at(100) };
const apart = { ...retry, everything: true, error: heldText([{ leastMs: -240_900, mostMs: -239_900 }]) };
const overHold = {
  by: { kind: 'stopped', scope: 'cluster', until: at(80) },
  since: at(60),
  until: at(80),
} as const;

const governedCase = (...given: Parameters<typeof governed>) => aCase([since(80)], governed(...given));
const tolerant = (...tolerations: ForecastPod['tolerations']) => ({ pod: known(aPod({ tolerations })) });

/** The cases of the first lines in `pod-headlines.txt`. */
const HEADLINES: Readonly<Record<string, PodCase>> = {
  'a countdown': aCase([since(80)]),
  'one that is over': aCase([since(20)]),
  'a taint that nothing tolerates': aCase([since(80, 'b', { value: 'v' })]),
  'two taints, of which one comes first': aCase(
    [since(80), since(90, 'b')],
    tolerant(tolerating('a', 60), tolerating('b', 20)),
  ),
  'no taint': aCase([]),
  'a pod that tolerates all': aCase([since(80)], tolerant({ operator: 'Exists' })),
  'a pod that no node has': aCase([], { pod: known(aPod({ node: undefined })) }),
  'a cluster that is observed': governedCase({ mode: 'observe' }),
  'observe mode where the built-in controller evicts': { ...governedCase({ mode: 'observe' }), ...on },
  'a hold': governedCase({}, { holds: [hold()] }),
  'a hold that ends': aCase([since(80)], governed({}, { holds: [hold({ until: at(200) })] })),
  'a stop that ends, and a hold that does not': governedCase(
    {},
    { stops: [{ ...act, scope: 'cluster', until: at(300) }], holds: [hold()] },
  ),
  'a hold that ends before the pod is due': governedCase({}, { holds: [hold({ until: at(120) })] }),
  'a guard that tripped': governedCase(
    {},
    { trips: [{ scope: 'customTaints', trippedAt: at(90), nodes: 5, outOf: 9 }] },
  ),
  'seconds that policy gives': governedCase({ tolerationSecondsOverrides: { a: 30 } }),
  'a longer time than the built-in controller knows of': {
    ...governedCase({ tolerationSecondsOverrides: { a: 90 } }),
    ...on,
  },
  'a rate': governedCase({ evictionRate: 5 }),
  'a disruption budget': aCase([since(80)], { ...evicting('delete'), ...noDisruption }),
  'a disruption budget that policy heeds': aCase([since(80)], { ...evicting('fail'), ...noDisruption }),
  'a webhook that refused the pod': aCase([since(20)], refused('delete')),
  'a webhook that refused the pod, and that policy heeds': aCase([since(20)], refused('fail')),
  'a webhook and a disruption budget': aCase([since(20)], { ...refused('delete'), ...noDisruption }),
  'a budget that blocked the pod, and allows it now': aCase(
    [since(20)],
    refused('delete', NO_DISRUPTION, {}),
  ),
  'a budget that blocked the pod, and cannot be read': aCase([since(20)], {
    ...refused('delete', NO_DISRUPTION, {}),
    budgets: { unknown: 'forbidden' },
  }),
  'a pod that a webhook refused before its node went down': aCase(
    [since(20), since(20, 'node.kubernetes.io/unreachable')],
    refused('fail'),
  ),
  'a refused pod that is being moved off its node, once': aCase([since(20)], {
    ...refused('delete', `${BEING_MOVED} 429; admission webhook "x" denied the request: not now.`),
    pod: known(aPod({ moving: true })),
  }),
  'a pod that is being moved off its node': aCase([since(80)], { pod: known(aPod({ moving: true })) }),
  'a pod that was evicted and ends': aCase([since(20)], {
    pod: known(
      aPod({ terminating: true, disrupted: true, leaving: { gracePeriodEndedAt: at(130), finalizers: [] } }),
    ),
  }),
  'one that does not end': aCase([since(20)], {
    pod: known(
      aPod({
        terminating: true,
        disrupted: true,
        leaving: { gracePeriodEndedAt: at(30), finalizers: ['x/y'] },
      }),
    ),
  }),
  'rules that cannot be read': aCase([since(80)], {
    service: service({ rules: { unknown: 'the table is away' } }),
  }),
  'a cluster that no relay hears, by which it is scheduled already': aCase([since(80)], {
    service: service({
      partition: known(
        after(
          nodeDelta(80, {
            taints: [taint('a', 80)],
            pods: [pod('u1', { namespace: 'shop', name: 'web-0' })],
          }),
        ),
      ),
      disconnection: known({ since: at(85) }),
    }),
  }),
  'a cluster that no relay hears, before it is scheduled': aCase([since(80)], {
    service: service({ partition: known(stored([since(80)])), disconnection: known({ since: at(75) }) }),
  }),
  'a cluster that no relay ever heard': aCase([], { service: service({ disconnection: known({}) }) }),
  'a node that is gone': aCase([since(80)], { node: known({ taints: undefined }) }),
  'the built-in controller, where only the cluster is asked': { ...bare, ...on },
  'a built-in controller that cannot be seen': { ...bare, builtIn: { unknown: 'forbidden' } },
  'a deleted pod that was evicted': gone(entry(0, 'scheduled'), entry(61, 'evicted', { delayMs: 300 })),
  'a deleted pod that another actor deleted': gone(
    entry(0, 'scheduled'),
    entry(31, 'already-gone', { deleted: { at: at(30), by: 'other' } }),
  ),
  'a deleted pod that the built-in controller evicted': gone({
    at: at(31),
    node: ref.node,
    uid: podUid('u0'),
    event: 'already-gone',
    causes: [],
    deleted: { at: at(30), by: 'taint-manager' },
  }),
  'a deleted pod whose eviction had been canceled': gone(
    entry(0, 'scheduled'),
    entry(20, 'canceled', { cancelReason: 'taint-removed' }),
  ),
  'a deleted pod that was observed': gone(entry(0, 'scheduled'), entry(60, 'would-evict')),
  'a deleted pod, after an observed one of the same name': gone(
    entry(0, 'would-evict', { uid: podUid('u9') }),
    entry(31, 'already-gone', { deleted: { at: at(30), by: 'other' } }),
  ),
  'a deleted pod that nobody knows': gone(),
  'a pod, and then the earlier pod of the same name': aCase([], {
    service: service({ history: known([entry(61, 'evicted', { delayMs: 300 })]) }),
  }),
  'an eviction that fails': failing({}, { retry }),
  'an eviction that fails, after a hold': failing({ held: overHold }, { retry }),
  'an eviction that the API server does not answer': failing(
    {},
    { retry: { ...retry, nextTryAt: at(110) }, outage },
  ),
  'an eviction that is held because clocks differ': failing({}, { retry: apart }),
  'an eviction that failed': failing({ gaveUpAt: at(95) }),
};

test('the first line is as recorded', (t) => {
  const text = Object.entries(HEADLINES).map(([name, podCase]) => `${name}: ${line(podCase)}\n`);
  t.assert.fileSnapshot(text.join(''), join(import.meta.dirname, 'pod-headlines.txt'), {
    serializers: [String],
  });
});

test('lists each taint with the deciding toleration and the tolerations that it shadows', () => {
  const tolerations = [tolerating('a', 60), { operator: 'Exists' }, tolerating('a')];
  const taints = [since(80), since(90, 'b')];
  const { taints: accounts } = explainPod({
    ...aCase(taints, { pod: known(aPod({ tolerations })) }),
    node: known({ taints: [A, B, X] }),
  });
  assert.deepEqual(accounts, [
    {
      taint: A,
      evicts: 'yes',
      since: at(80),
      known: 'added',
      seconds: 60,
      deadlineAt: at(140),
      decides: true,
      toleration: { index: 0, seconds: 60 },
      shadowed: [{ index: 1 }, { index: 2 }],
      schedules: true,
    },
    {
      taint: B,
      evicts: 'yes',
      since: at(90),
      known: 'added',
      decides: false,
      toleration: { index: 1 },
      shadowed: [],
      schedules: true,
    },
    {
      taint: X,
      evicts: 'no',
      decides: false,
      toleration: { index: 1 },
      shadowed: [],
      schedules: true,
    },
  ]);
});

test('marks a NoSchedule taint of treatAsNoExecute as virtual, and keeps pods that tolerate it', () => {
  const taints = [since(80, 'm', { effect: 'NoSchedule' })];
  const virtual = (tolerations: ReturnType<typeof aPod>['tolerations']) =>
    explainPod(
      aCase(taints, { ...governed({ treatAsNoExecute: ['m'] }), pod: known(aPod({ tolerations })) }),
    );
  const goes = virtual([]);
  assert.equal(goes.outcome.kind, 'evict');
  assert.deepEqual(
    goes.taints.map(({ evicts, changedBy }) => [evicts, changedBy]),
    [['virtual', 'treatAsNoExecute']],
  );
  assert.equal(goes.builtIn?.evictsAt, undefined, 'the built-in controller does not look at it');
  assert.equal(virtual([{ key: 'm', operator: 'Exists', effect: 'NoSchedule' }]).outcome.kind, 'keep');
});

const schedulingOf = (fields: Partial<PodCase>) => explainPod(aCase([since(80)], fields)).scheduling;

test('predicts a loop where only tolerationSeconds keep the replacement pod off the node', () => {
  assert.deepEqual(schedulingOf({}), { replacedBy: 'controller', keptOffBy: [], loops: true });
  const node = known({ taints: [A, X] });
  assert.deepEqual(schedulingOf({ node }), { replacedBy: 'controller', loops: false, keptOffBy: [X] });
  // No scheduler places a mirror pod.
  const mirror = known(aPod({ owner: { kind: 'Node', name: 'n1' } }));
  const recreated = { replacedBy: 'kubelet', keptOffBy: [], loops: false };
  assert.deepEqual(schedulingOf({ pod: mirror, node }), recreated);
});

test('expects no replacement for a bare pod or a finished pod, or from a Job that fails', () => {
  const { owner: _owner, ...bare } = aPod();
  const nobody = { replacedBy: 'nobody', keptOffBy: [], loops: false };
  const job = { kind: 'job-fails', reason: 'failures: 1, backoffLimit: 0' } as const;
  assert.deepEqual(schedulingOf({ pod: known(bare) }), nobody);
  assert.deepEqual(schedulingOf({ end: { job } }), { job, ...nobody });
  assert.deepEqual(schedulingOf({ end: { finished: true } }), { finished: true, ...nobody });
  const counted = { kind: 'replaced', reason: 'failures: 1, backoffLimit: 6' } as const;
  assert.equal(schedulingOf({ end: { job: counted } })?.loops, true);
});

test('lists the commands that keep the pod', () => {
  const fields = tolerant(tolerating('a', 60), tolerating(NOT_READY, 300));
  const { remediations } = explainPod(aCase([since(80), since(90, 'b'), since(90, NOT_READY)], fields));
  assert.deepEqual(remediations, [
    {
      kind: 'tolerate',
      command: `kubectl patch pod web-0 --namespace shop --type json --patch '[{"op":"remove","path":"/spec/tolerations/0/tolerationSeconds"},{"op":"remove","path":"/spec/tolerations/1/tolerationSeconds"},{"op":"add","path":"/spec/tolerations/-","value":{"key":"b","operator":"Exists","effect":"NoExecute"}}]'`,
    },
    { kind: 'untaint', taint: A, command: 'kubectl taint nodes n1 a:NoExecute-' },
    { kind: 'untaint', taint: B, command: 'kubectl taint nodes n1 b:NoExecute-' },
    { kind: 'fix-node', taints: [{ key: NOT_READY, effect: 'NoExecute' }] },
    { kind: 'hold', command: "taintward hold pod shop/web-0 --cluster c1 --reason 'REASON'" },
  ]);
});

test('lists every gate of a pod, with its actor and the command that ends it', () => {
  const stop = { scope: 'fleet', actor: 'bob', at: at(80), reason: 'an incident' } as const;
  const podCase = aCase(
    [since(20)],
    governed({ exclude: [{ namespaces: ['shop'] }] }, { holds: [hold()], stops: [stop] }),
  );
  const { gates, release } = explainPod(podCase);
  assert.deepEqual(
    gates.map(({ by }) => by.kind),
    ['stopped', 'hold', 'excluded'],
  );
  const who = { actor: 'anna', at: at(90), reason: 'is being debugged' };
  assert.deepEqual(gates[1], { by: { kind: 'hold', id: 'h1' }, act: who, target: hold().target });
  assert.deepEqual(release, [
    "taintward resume --all --reason 'REASON'",
    "taintward release h1 --reason 'REASON'",
    'taintward policy apply -f policy.yaml c1',
  ]);
  assert.match(
    line(podCase),
    /but is held by the stop of all clusters \(bob: an incident\), and by hold h1 \(anna: is being debugged\), and by the policy \(excluded\)\.$/,
  );
});

test('answers from the stored record when the API server does not answer, and lists the unknown facts', () => {
  const partition = after(nodeDelta(80, { taints: [taint('a', 80)] }));
  const record = recordIn(partition);
  assert.ok(record);
  const unreachable = { unknown: 'the API server does not answer' };
  const answer = explainPod(
    aCase([], {
      namespace: 'default',
      name: record.name,
      pod: unreachable,
      node: unreachable,
      service: service({ partition: known(partition) }),
    }),
  );
  assert.deepEqual(answer.outcome, {
    kind: 'evict',
    at: at(140),
    by: 'delete',
    dueAt: at(140),
    causes: record.causes,
    heldBy: [],
    blockedBy: [],
  });
  assert.deepEqual(answer.unknown, [{ what: 'the pod', reason: 'the API server does not answer' }]);
  assert.equal(
    lineOf(answer),
    'default/pod-u1 will be evicted at 140s because it tolerates a:NoExecute for 1m. This is its record: the pod could not be read.',
  );
});

test("answers from the record of a blocked pod that can't be read by the last answer of the Eviction API", () => {
  const unreachable = { unknown: 'the API server does not answer' };
  const web0 = pod('u1', { namespace: 'shop', name: 'web-0' });
  const blocked = (onTimeout: 'delete' | 'fail', key = 'a') => {
    const record = recordIn(after(nodeDelta(20, { taints: [taint(key, 20)], pods: [web0] })));
    assert.ok(record);
    const { service } = refused(onTimeout, NO_DISRUPTION, {}, record);
    return line(aCase([], { pod: unreachable, node: unreachable, ...defined({ service }) }));
  };
  assert.match(
    blocked('delete'),
    /rejected \(429; The disruption budget .*\), and it will be deleted at 145s/,
  );
  assert.match(blocked('fail'), /stays as long as its eviction is rejected .*: the policy never deletes/);
  assert.match(blocked('fail', 'node.kubernetes.io/unreachable'), /will be evicted at 103s/);
});

test('lists the command that retries a failed eviction', () => {
  assert.deepEqual(explainPod(failing({ gaveUpAt: at(95) })).release, ['taintward retry c1']);
});
