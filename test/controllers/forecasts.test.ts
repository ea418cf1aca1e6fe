import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, afterEach, before, describe, test } from 'node:test';
import pMap from 'p-map';
import { z } from 'zod';
import { EXIT } from '#functions/cli/exit-codes.ts';
import { run } from '#functions/cli/run.ts';
import { AwsClients } from '#shared/access/aws-clients.ts';
import { connector } from '#shared/access/connect.ts';
import { localContextConnection } from '#shared/access/local-context-connection.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { openFleet, openLive } from '#shared/operations/fleet/open-fleet.ts';
import { systemClock } from '#shared/time/clock.ts';
import { Account, MIN_PERMISSIONS } from '#test/cluster/rig/account.ts';
import { ControllerManager } from '#test/cluster/rig/controller-manager.ts';
import { assertUntouched } from '#test/cluster/rig/deadline.ts';
import { SUITE_SCHEDULER } from '#test/cluster/rig/scheduler.ts';
import { Stage } from '#test/cluster/rig/stage.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';
import { plainOutput } from '#test/unit/cli/plain-output.ts';

/*
 * Forecasts of what becomes of workloads after evictions, compared with what the real controllers do. In observe mode,
 * the command line forecasts the evictions. Then the service enforces. The suite binds pods, and ends their containers
 * as a kubelet does.
 */

const TAINT = { key: 'forecast', effect: 'NoExecute' };
/** Keeps replacements off the node, but evicts no pod. */
const CLOSED = { key: 'closed', effect: 'NoSchedule' };
const CASE_LABEL = 'taintward.dev/case';
/** Exit code of a container that SIGTERM ended. */
const TERMINATED = 143;

const COLLECTIONS = {
  Pod: '/api/v1/namespaces/*/pods',
  Deployment: '/apis/apps/v1/namespaces/*/deployments',
  ReplicaSet: '/apis/apps/v1/namespaces/*/replicasets',
  StatefulSet: '/apis/apps/v1/namespaces/*/statefulsets',
  DaemonSet: '/apis/apps/v1/namespaces/*/daemonsets',
  Job: '/apis/batch/v1/namespaces/*/jobs',
};

const READ_WORKLOADS = [
  ...['deployments', 'replicasets', 'statefulsets', 'daemonsets'].map((resource) => ({
    group: 'apps',
    resource,
    verbs: ['get'],
  })),
  { group: 'batch', resource: 'jobs', verbs: ['get'] },
  { group: 'policy', resource: 'poddisruptionbudgets', verbs: ['list'] },
];

const WhatIf = z.object({
  breaks: z.array(
    z.object({
      kind: z.string(),
      name: z.string().optional(),
      job: z.object({ name: z.string() }).optional(),
    }),
  ),
});
const Explained = z.object({
  outcome: z.object({ kind: z.string(), by: z.unknown() }),
  scheduling: z.object({
    replacedBy: z.string(),
    keptOffBy: z.array(z.object({ key: z.string() })),
    loops: z.boolean(),
    finished: z.boolean().optional(),
    job: z.object({ kind: z.string() }).optional(),
  }),
});
type Scheduling = z.infer<typeof Explained>['scheduling'];

const Status = z.object({
  failed: z.int().default(0),
  succeeded: z.int().default(0),
  failedIndexes: z.string().default(''),
  uncountedTerminatedPods: z.object({ failed: z.array(z.string()).default([]) }).prefault({}),
  desiredNumberScheduled: z.int().optional(),
  numberMisscheduled: z.int().optional(),
  conditions: z.array(z.object({ type: z.string(), reason: z.string().default('') })).default([]),
});
const Workload = z.object({ status: Status.prefault({}) });

/** A workload after the evictions. */
interface Evicted {
  readonly status: () => Promise<z.infer<typeof Status>>;
  /** Pods that were created after the first eviction. */
  readonly replacements: () => readonly PodLife[];
  /** Pods of the workload on the other node. */
  readonly others: readonly PodLife[];
}

interface Case {
  readonly kind: keyof typeof COLLECTIONS;
  readonly spec?: object;
  readonly template?: object;
  /** Number of pods; absent: 1. With `spread`, only the first is on the tainted node. */
  readonly pods?: number;
  readonly spread?: true;
  /** How the first pod ends before the node is tainted; absent: it runs. */
  readonly ended?: 'Succeeded' | 'Failed';
  /** The forecast for the last pod on the tainted node; absent: other pods decide, too. */
  readonly forecast?: Partial<Scheduling>;
  /** What `what-if` says that the evictions break. */
  readonly breaks?: 'job' | 'bare-pod';
  /** Resolves when the controller has done as forecast. */
  readonly becomes: (evicted: Evicted) => Promise<unknown>;
}

const failedOf = async ({ status }: Pick<Evicted, 'status'>): Promise<number> => {
  const { failed, uncountedTerminatedPods } = await status();
  return failed + uncountedTerminatedPods.failed.length;
};

const failureOf = async ({ status }: Pick<Evicted, 'status'>): Promise<string | undefined> =>
  (await status()).conditions.find(({ type }) => type === 'Failed')?.reason;

/** The controller creates a replacement. A Job counts as many failed pods. */
const replaced =
  (failed = 0): Case['becomes'] =>
  async (evicted) => {
    await until('a replacement is created', () => evicted.replacements().length > 0);
    if (failed > 0) await until('the failure counts', async () => (await failedOf(evicted)) > 0);
    assert.deepEqual([await failedOf(evicted), await failureOf(evicted)], [failed, undefined]);
  };

const fails =
  (reason: string): Case['becomes'] =>
  async (evicted) => {
    assert.equal(await until('the Job fails', () => failureOf(evicted)), reason);
  };

/** The Job continues without the failed index, and fails when its other index ends. */
const failsLater: Case['becomes'] = async (evicted) => {
  const index = await until(
    'an index fails',
    async () => (await evicted.status()).failedIndexes || undefined,
  );
  assert.deepEqual([index, await failureOf(evicted)], ['0', undefined]);
  await Promise.all(evicted.others.map((pod) => end(pod, 'Succeeded', 0)));
  await fails('FailedIndexes')(evicted);
  assert.deepEqual(evicted.replacements(), []);
};

/** No controller reacts. */
const left: Case['becomes'] = async (evicted) => {
  assert.deepEqual([evicted.replacements(), await failedOf(evicted)], [[], 0]);
};

const keptOff: Case['becomes'] = async ({ status, replacements }) => {
  await until('no pod is left on the node', async () => (await status()).numberMisscheduled === 0);
  assert.deepEqual([(await status()).desiredNumberScheduled, replacements()], [0, []]);
};

const onDisruption = (action: string) => ({
  rules: [{ action, onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] }],
});
const onExit = (action: string, ...values: readonly number[]) => ({
  action,
  onExitCodes: { operator: 'In', values },
});
const INDEXED = { completionMode: 'Indexed', completions: 2, parallelism: 2 };
const TWO = { completions: 2, parallelism: 2 };
const onIndex = { pods: 2, spread: true } as const;
const job = (kind: string): Partial<Scheduling> =>
  ['job-fails', 'index-fails'].includes(kind)
    ? { replacedBy: 'nobody', job: { kind } }
    : { replacedBy: 'controller', job: { kind } };
const SUITE_TOLERATED = { operator: 'Exists', key: 'taintward.dev/suite' };

/** Where nothing may happen, the controllers have had the time of the cases before. */
const CASES: Readonly<Record<string, Case>> = {
  deployment: { kind: 'Deployment', forecast: { replacedBy: 'controller' }, becomes: replaced() },
  'replica-set': { kind: 'ReplicaSet', forecast: { replacedBy: 'controller' }, becomes: replaced() },
  'stateful-set': { kind: 'StatefulSet', forecast: { replacedBy: 'controller' }, becomes: replaced() },
  'daemon-set-that-returns': {
    kind: 'DaemonSet',
    template: {
      tolerations: [SUITE_TOLERATED, { operator: 'Exists', key: CLOSED.key }, tolerates(TAINT.key, 1)],
    },
    forecast: { replacedBy: 'daemonset', loops: true, keptOffBy: [] },
    becomes: replaced(),
  },
  'daemon-set-kept-off': {
    kind: 'DaemonSet',
    template: { tolerations: [SUITE_TOLERATED, tolerates(TAINT.key, 1)] },
    forecast: { replacedBy: 'daemonset', loops: false, keptOffBy: [{ key: CLOSED.key }] },
    becomes: keptOff,
  },
  'job-within-its-limit': {
    kind: 'Job',
    spec: { backoffLimit: 1 },
    forecast: job('replaced'),
    becomes: replaced(1),
  },
  'job-by-default': { kind: 'Job', forecast: job('replaced'), becomes: replaced(1) },
  'job-past-its-limit': {
    kind: 'Job',
    spec: { backoffLimit: 0 },
    forecast: job('job-fails'),
    breaks: 'job',
    becomes: fails('BackoffLimitExceeded'),
  },
  'job-that-restarts-containers': {
    kind: 'Job',
    spec: { backoffLimit: 0 },
    template: { restartPolicy: 'OnFailure' },
    forecast: job('job-fails'),
    breaks: 'job',
    becomes: fails('BackoffLimitExceeded'),
  },
  'job-that-waits-for-the-end': {
    kind: 'Job',
    spec: { backoffLimit: 1, podReplacementPolicy: 'Failed' },
    forecast: job('replaced'),
    becomes: replaced(1),
  },
  'job-with-an-earlier-failure': {
    kind: 'Job',
    spec: { ...TWO, backoffLimit: 1 },
    pods: 2,
    ended: 'Failed',
    forecast: job('job-fails'),
    breaks: 'job',
    becomes: fails('BackoffLimitExceeded'),
  },
  'job-of-two-pods': {
    kind: 'Job',
    spec: { ...TWO, backoffLimit: 1 },
    pods: 2,
    breaks: 'job',
    becomes: fails('BackoffLimitExceeded'),
  },
  'job-that-ignores-disruptions': {
    kind: 'Job',
    spec: { backoffLimit: 0, podFailurePolicy: onDisruption('Ignore') },
    forecast: job('not-counted'),
    becomes: replaced(0),
  },
  'job-that-counts-disruptions': {
    kind: 'Job',
    spec: { backoffLimit: 0, podFailurePolicy: onDisruption('Count') },
    forecast: job('job-fails'),
    breaks: 'job',
    becomes: fails('BackoffLimitExceeded'),
  },
  'job-that-fails-by-disruptions': {
    kind: 'Job',
    spec: { podFailurePolicy: onDisruption('FailJob') },
    forecast: job('job-fails'),
    breaks: 'job',
    becomes: fails('PodFailurePolicy'),
  },
  'job-that-ignores-signals': {
    kind: 'Job',
    spec: { backoffLimit: 0, podFailurePolicy: { rules: [onExit('Ignore', 137, TERMINATED)] } },
    forecast: job('not-counted'),
    becomes: replaced(0),
  },
  'job-whose-first-rule-counts': {
    kind: 'Job',
    spec: {
      backoffLimit: 0,
      podFailurePolicy: {
        rules: [onExit('Ignore', 42), onExit('FailJob', TERMINATED), ...onDisruption('Ignore').rules],
      },
    },
    forecast: job('job-fails'),
    breaks: 'job',
    becomes: fails('PodFailurePolicy'),
  },
  'index-within-its-limit': {
    ...onIndex,
    kind: 'Job',
    spec: { ...INDEXED, backoffLimitPerIndex: 1 },
    forecast: job('replaced'),
    becomes: replaced(1),
  },
  'index-past-its-limit': {
    ...onIndex,
    kind: 'Job',
    spec: { ...INDEXED, backoffLimitPerIndex: 0 },
    forecast: job('index-fails'),
    breaks: 'job',
    becomes: failsLater,
  },
  'index-that-fails-by-disruptions': {
    ...onIndex,
    kind: 'Job',
    spec: { ...INDEXED, backoffLimitPerIndex: 6, podFailurePolicy: onDisruption('FailIndex') },
    forecast: job('index-fails'),
    breaks: 'job',
    becomes: failsLater,
  },
  'index-that-ignores-disruptions': {
    ...onIndex,
    kind: 'Job',
    spec: { ...INDEXED, backoffLimitPerIndex: 0, podFailurePolicy: onDisruption('Ignore') },
    forecast: job('not-counted'),
    becomes: replaced(0),
  },
  'index-of-a-job-that-allows-no-failed-index': {
    ...onIndex,
    kind: 'Job',
    spec: { ...INDEXED, backoffLimitPerIndex: 0, maxFailedIndexes: 0 },
    forecast: job('job-fails'),
    breaks: 'job',
    becomes: fails('MaxFailedIndexesExceeded'),
  },
  'index-of-a-job-past-its-limit': {
    ...onIndex,
    kind: 'Job',
    spec: { ...INDEXED, backoffLimitPerIndex: 6, backoffLimit: 0 },
    forecast: job('job-fails'),
    breaks: 'job',
    becomes: fails('BackoffLimitExceeded'),
  },
  bare: {
    kind: 'Pod',
    forecast: { replacedBy: 'nobody', loops: false },
    breaks: 'bare-pod',
    becomes: left,
  },
  'finished-bare': {
    kind: 'Pod',
    ended: 'Succeeded',
    forecast: { replacedBy: 'nobody', finished: true },
    becomes: left,
  },
  'finished-replica': {
    kind: 'ReplicaSet',
    ended: 'Failed',
    forecast: { replacedBy: 'nobody', finished: true },
    becomes: left,
  },
  'finished-job': {
    kind: 'Job',
    spec: { backoffLimit: 0 },
    ended: 'Succeeded',
    forecast: { replacedBy: 'nobody', finished: true },
    becomes: left,
  },
};

let stage: Stage;
let controllers: ControllerManager;
let node: string;
let breaks: z.infer<typeof WhatIf>['breaks'];
const forecasts = new Map<string, Scheduling>();
/** The pods that were there before the evictions, by case. */
const first = new Map<string, readonly PodLife[]>();

const path = (name: string): string =>
  `${COLLECTIONS[caseOf(name).kind].replace('*', stage.cluster.namespace)}/${name}`;
const caseOf = (name: string): Case => CASES[name] ?? assert.fail(`no case ${name}`);

function manifest(name: string, { kind, spec = {}, template = {} }: Case): object {
  const labels = { [CASE_LABEL]: name };
  const pod = {
    schedulerName: SUITE_SCHEDULER,
    automountServiceAccountToken: false,
    containers: [{ name: 'main', image: 'registry.k8s.io/pause:3.10' }],
    ...(kind === 'Job' ? { restartPolicy: 'Never' } : {}),
    ...(kind === 'DaemonSet' ? { nodeSelector: { 'kubernetes.io/hostname': node } } : {}),
    ...template,
  };
  if (kind === 'Pod') return { metadata: { name, labels }, spec: pod };
  const selector = kind === 'Job' ? {} : { selector: { matchLabels: labels } };
  const service = kind === 'StatefulSet' ? { serviceName: name } : {};
  return {
    metadata: { name },
    spec: { template: { metadata: { labels }, spec: pod }, ...selector, ...service, ...spec },
  };
}

/** Returns all pods that a case ever had, by name: pods of an indexed Job by index. */
const podsOf = (name: string): readonly PodLife[] =>
  [...stage.cluster.witness.pods.values()]
    .filter(({ moments }) => moments[0]?.labels[CASE_LABEL] === name)
    .sort((a, b) => (a.name < b.name ? -1 : 1));

const onNode = (name: string): readonly PodLife[] =>
  (first.get(name) ?? []).filter((pod) => pod.node === node);

/** Ends a pod's container. A pod that is gone needs no end. */
async function end({ name }: PodLife, phase: 'Succeeded' | 'Failed', exitCode: number): Promise<void> {
  const state = { terminated: { exitCode, reason: phase } };
  const status = {
    phase,
    containerStatuses: [{ name: 'main', state, image: '', imageID: '', ready: false, restartCount: 0 }],
  };
  await stage.cluster.api.patchStatus(stage.cluster.podPath(name), status).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  });
}

/** A pod without a controller has no status that counts. */
const statusOf = async (name: string): Promise<z.infer<typeof Status>> =>
  Workload.parse(caseOf(name).kind === 'Pod' ? {} : await stage.cluster.api.read(path(name))).status;

/** Creates the workload of a case, runs its pods, and ends the first as the case says. */
async function create(name: string): Promise<void> {
  const { cluster } = stage;
  const { kind, pods: count = 1, spread, ended } = caseOf(name);
  await cluster.api.create(path(name).slice(0, -name.length - 1), manifest(name, caseOf(name)));
  const pods = await until(`${name} has its pods`, () => podsOf(name).length >= count && podsOf(name));
  const other = cluster.nodeName('other');
  await Promise.all(pods.map((pod, index) => cluster.bindPod(pod.name, spread && index > 0 ? other : node)));
  await until(`${name} runs`, () => pods.every(({ runningAt }) => runningAt !== undefined));
  const [ending] = pods;
  if (ended && ending) {
    await end(ending, ended, ended === 'Failed' ? 1 : 0);
    if (kind === 'Job')
      await until(`${name} counts its pod`, async () => {
        const { failed, succeeded } = await statusOf(name);
        return failed + succeeded === 1;
      });
    if (kind === 'ReplicaSet') await until(`${name} has a new pod`, () => podsOf(name).length > count);
  }
}

/** Runs a command on the service, and returns the JSON that it prints. */
async function taintward(...args: readonly string[]): Promise<unknown> {
  const clock = systemClock;
  const connect = connector({ aws: new AwsClients(), clock, localContext: localContextConnection });
  const { state, deps } = plainOutput();
  const fleetDeps = { clock, connect, hint: deps.complain };
  const code = await run(['--state-dir', stage.service.stateDir, ...args, '-o', 'json'], {
    ...deps,
    clock,
    connect,
    fleet: (choice) => openFleet(choice, fleetDeps),
    live: (choice) => openLive(choice, fleetDeps),
  });
  // `what-if` exits with 2 if something breaks.
  assert.ok(code === EXIT.fine || code === EXIT.actionRequired, `${args.join(' ')}: ${state.complained}`);
  return JSON.parse(state.printed);
}

const explain = async (pod: string): Promise<z.infer<typeof Explained>> =>
  Explained.parse(await taintward('explain', `pod/${pod}`, '-n', stage.cluster.namespace));

/** Removes all workloads and pods. Pods of Jobs have a finalizer, which their controller removes. */
async function removeWorkloads(): Promise<void> {
  const { api, namespace, witness } = stage.cluster;
  const { Pod, ...owners } = COLLECTIONS;
  const remove = (collection: string) =>
    api.removeAll(collection.replace('*', namespace), { gracePeriodSeconds: 0 });
  await Promise.all(Object.values(owners).map(remove));
  // A controller may still be creating a pod.
  await until('all pods are gone', async () => {
    await remove(Pod);
    return witness.pods.values().every(({ removedAt }) => removedAt !== undefined);
  });
}

const NAMES = Object.keys(CASES);

describe('forecasts of evictions', () => {
  before(async () => {
    stage = await Stage.open();
    const { cluster } = stage;
    controllers = await ControllerManager.ofWorkloads();
    node = await cluster.addNode('tainted');
    await cluster.addNode('other');
    const { token } = await Account.create(cluster, 'forecaster', [...MIN_PERMISSIONS, ...READ_WORKLOADS]);
    const kubeconfig = await stage.writeKubeconfig('forecaster', cluster.connection, token);
    const policy = stage.write('policy.yaml', 'mode: observe\nguard: off\n');
    await Promise.all([stage.start({ kubeconfig, policy }), ...NAMES.map(create)]);
    const taint = `${TAINT.key}:${TAINT.effect}`;
    breaks = WhatIf.parse(await taintward('what-if', '--taint', taint, '--nodes', node)).breaks;
    for (const name of NAMES) first.set(name, podsOf(name));
    const { spec } = z
      .object({ spec: z.object({ taints: z.array(z.looseObject({})) }) })
      .parse(await cluster.api.read(`/api/v1/nodes/${node}`));
    await cluster.api.patch(`/api/v1/nodes/${node}`, { spec: { taints: [...spec.taints, TAINT, CLOSED] } });
    const forecast = async (name: string) => {
      const pod = onNode(name).at(-1) ?? assert.fail(`${name} has no pod`);
      const { scheduling } = await explain(pod.name);
      forecasts.set(name, scheduling);
    };
    await pMap(NAMES, forecast, { concurrency: 3 });
    writeFileSync(policy, 'mode: enforce\nguard: off\n');
    const evicted = NAMES.flatMap(onNode);
    await until('all pods are evicted', () => evicted.every(({ evictedAt }) => evictedAt !== undefined));
    await Promise.all(
      NAMES.flatMap((name) => (caseOf(name).kind === 'Job' ? onNode(name) : [])).map((pod) =>
        end(pod, 'Failed', TERMINATED),
      ),
    );
    await until('all evicted pods are gone', () => evicted.every(({ removedAt }) => removedAt !== undefined));
  });
  afterEach(() => {
    stage.cluster.check();
    controllers.check();
  });
  after(async () => {
    if (controllers) await removeWorkloads();
    await controllers?.stop();
    await stage?.close();
  });

  for (const [name, { kind, forecast, breaks: broken, becomes }] of Object.entries(CASES)) {
    test(`agree with the controller of a ${kind}: ${name}`, async () => {
      if (forecast) assert.partialDeepStrictEqual(forecasts.get(name), forecast);
      const stated = breaks.find((each) => (each.job?.name ?? each.name) === name);
      assert.equal(stated?.kind, broken);
      const known = new Set(first.get(name)?.map(({ uid }) => uid));
      await becomes({
        status: () => statusOf(name),
        replacements: () => podsOf(name).filter(({ uid }) => !known.has(uid)),
        others: (first.get(name) ?? []).filter((pod) => pod.node !== node),
      });
    });
  }

  test('agree with the kubelet of a static pod, whose next mirror pod is held', async () => {
    const { cluster, service } = stage;
    const evicted = await cluster.addPod(node, 'mirror', { owner: node });
    await until('the mirror pod is evicted', () => evicted.removedAt);
    const next = await cluster.addPod(node, 'mirror', { owner: node });
    await until('its successor is held', () => service.printed('mirror: eviction held').length > 0);
    const { outcome, scheduling } = await explain('mirror');
    assert.deepEqual(outcome, { kind: 'held', by: { kind: 'recreated' } });
    assert.partialDeepStrictEqual(scheduling, { replacedBy: 'kubelet', loops: false });
    assertUntouched(next);
  });
});
