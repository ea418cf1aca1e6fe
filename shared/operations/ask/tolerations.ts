import pMap from 'p-map';
import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import { emptyPartition } from '#shared/eviction/records.ts';
import type { ForecastPod, NodeCase } from '#shared/explain/forecast.ts';
import { builtInRules } from '#shared/explain/governing.ts';
import {
  type IneffectiveToleration,
  ineffectiveTolerations,
} from '#shared/explain/ineffective-tolerations.ts';
import { knownOr } from '#shared/explain/known.ts';
import {
  podTolerations,
  previewTolerations,
  type TolerationPreview,
} from '#shared/explain/toleration-preview.ts';
import { type Workload, workloadText } from '#shared/explain/workload.ts';
import { controllerOf } from '#shared/kubernetes/controller-of.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import { projectNode, projectPod, projectTolerations } from '#shared/kubernetes/project.ts';
import { rulesOf } from '#shared/state/rules-store.ts';
import { type MatchOptions, NODE_UNREACHABLE, type Toleration } from '#shared/taints/taint.ts';
import { tolerationProblems } from '#shared/taints/tolerations.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { noteAct } from '../acts/note-act.ts';
import type { ClusterObjects, PatchOperation } from '../fleet/cluster-objects.ts';
import { type ContextFleet, type Fleet, FleetError } from '../fleet/fleet.ts';
import type { LiveCluster } from '../fleet/live-cluster.ts';
import { budgetsIn } from './budgets.ts';
import { factOf } from './facts.ts';
import { podsOf } from './hold-target.ts';
import { liveNode, shownIn } from './live-node.ts';
import { workloadPath } from './workload-finder.ts';

type Json = Readonly<Record<string, unknown>>;

/** A toleration in the API server's JSON. */
export const tolerationSchema = z.strictObject({
  key: z.string().exactOptional(),
  operator: z.string().exactOptional(),
  value: z.string().exactOptional(),
  effect: z.string().exactOptional(),
  tolerationSeconds: z.int().exactOptional(),
});
export type TolerationObject = z.output<typeof tolerationSchema>;

export interface TolerationsQuestion {
  readonly cluster: ClusterName;
  readonly matching: MatchOptions;
  /** A workload or, with the kind Pod, a pod. */
  readonly workload: Workload;
  /** The template's new list or, for running pods, tolerations to add. Absent: nothing changes. */
  readonly tolerations?: readonly TolerationObject[];
  /** The running pods get them, not the template. */
  readonly pods: boolean;
}

/** A list of tolerations, and its consequences on today's nodes. Plain data; times are epoch ms. */
export interface TolerationsAnswer extends Workload, TolerationPreview {
  readonly at: EpochMs;
  readonly cluster: ClusterName;
  /** The list as it is: the template's or, for running pods, that of one of them. */
  readonly current: readonly TolerationObject[];
  /** The list in question. */
  readonly next: readonly TolerationObject[];
  /** What pods get in addition, from admission or from the DaemonSet controller. */
  readonly added: readonly TolerationObject[];
  readonly ineffective: readonly IneffectiveToleration[];
  /** Faults for which an API server rejects the list. */
  readonly faults: readonly string[];
  /** Reasons why Taintward doesn't write the list. */
  readonly obstacles: readonly string[];
  /** Consequences of the change. Empty: nothing changes. */
  readonly effects: readonly string[];
  /** Commands that make the change. */
  readonly commands: readonly string[];
}

interface TolerationsWrite {
  /** As kubectl names it. */
  readonly object: string;
  readonly path: string;
  /** Fails if the object is no longer the one that was read. */
  readonly check: PatchOperation;
  readonly operations: readonly PatchOperation[];
}

/** The field manager of changed templates. */
const TOLERATIONS_MANAGER = 'taintward-cli';
const PARALLEL_NODES = 8;

export interface TolerationsPlan {
  readonly answer: TolerationsAnswer;
  readonly writes: readonly TolerationsWrite[];
}

/** Rejects with `FleetError` if there is no such object, and with `ApiError` if it, pods, or nodes cannot be read. */
export async function askTolerations(
  live: LiveCluster,
  fleet: Fleet | ContextFleet,
  { cluster, matching, workload, tolerations, pods }: TolerationsQuestion,
  { clock }: { readonly clock: Clock },
): Promise<TolerationsPlan> {
  const { kind, namespace } = workload;
  const ofPods = pods || kind === 'Pod';
  const path = workloadPath(workload);
  const json = path && (await live.objects.get(path));
  if (!path || !json)
    throw new FleetError(
      `There is no ${workloadText(workload)}, or its kind is not one of Kubernetes itself.`,
    );
  const wanted = tolerations && projectTolerations(tolerations);
  const added = (list: readonly Toleration[]) => (wanted ?? []).filter((each) => !list.some(isSame(each)));
  const running = kind === 'Pod' ? [projectPod(json)] : await podsIn(live.objects, workload);
  const template = projectTolerations(fieldsAt(json, fieldPath(kind))['tolerations']);
  const current = (ofPods ? running[0]?.tolerations : undefined) ?? template;
  // Only the first match counts.
  const next = ofPods ? [...added(current), ...current] : (wanted ?? current);
  const whole = ofPods ? next : podTolerations(kind, next);
  const now = clock.now();
  const rules =
    fleet.kind === 'context'
      ? builtInRules(matching)
      : rulesOf(await fleet.rulesStore.read(cluster), matching);
  const budgets = knownOr(await factOf(() => budgetsIn(live.objects, namespace)), undefined);
  const nodes = await nodesWith(live, fleet, cluster, running, clock);
  const obstacles = ofPods ? [] : obstaclesOf(json, kind);
  const faults = tolerationProblems(next, matching).map(({ message }) => message);
  const writes = !wanted
    ? []
    : ofPods
      ? running.flatMap((pod) => podWrite(pod, added(pod.tolerations)))
      : [templateWrite(path, json, workload, tolerations)];
  const answer = {
    at: now,
    cluster,
    ...workload,
    current: current.map(objectFrom),
    next: next.map(objectFrom),
    added: whole.filter((each) => !next.includes(each)).map(objectFrom),
    ineffective: ineffectiveTolerations(ofPods ? 'Pod' : kind, next),
    faults,
    obstacles,
    effects: !wanted ? [] : ofPods ? POD_EFFECTS : templateEffects(json, kind),
    commands:
      faults.length + obstacles.length === 0 ? writes.map((write) => commandOf(write, namespace)) : [],
    ...previewTolerations({
      now,
      rules,
      nodes: nodes.map((node) => ({ ...node, now, rules, ...defined({ budgets }) })),
      pods: running,
      tolerations: whole,
      ...(ofPods || !wanted ? { listOf: ({ tolerations: list }) => [...added(list), ...list] } : {}),
    }),
  };
  return { answer, writes };
}

/** Path of the fields of pods in an object of a kind. */
function fieldPath(kind: string): readonly string[] {
  if (kind === 'Pod') return ['spec'];
  return [...(kind === 'CronJob' ? ['spec', 'jobTemplate'] : []), 'spec', 'template', 'spec'];
}

const fieldsAt = (json: unknown, path: readonly string[]): Json =>
  path.reduce((fields, name) => fieldsOf(fields[name]), fieldsOf(json));

const podsIn = (objects: ClusterObjects, { namespace, kind, name }: Workload): Promise<ForecastPod[]> =>
  Array.fromAsync(podsOf(objects, { kind: 'workload', namespace, owner: { kind, name } }), ({ pod }) => pod);

/** All nodes, and those of the pods with everything that decides there. */
async function nodesWith(
  live: LiveCluster,
  fleet: Fleet | ContextFleet,
  cluster: ClusterName,
  pods: readonly ForecastPod[],
  clock: Clock,
): Promise<readonly Pick<NodeCase, 'partition' | 'live'>[]> {
  const all = await Array.fromAsync(live.objects.list('/api/v1/nodes'), projectNode);
  const shown = new Map(all.map(({ name, ...node }) => [name, node]));
  const own = new Set(pods.flatMap(({ node }) => node ?? []));
  const read = async (node: NodeName) => {
    const ref = { cluster, node };
    const seen = shown.get(node);
    const isWhole = seen && !(own.has(node) && seen.taints.some(({ key }) => key === NODE_UNREACHABLE));
    const found = isWhole ? shownIn(fleet, seen) : await liveNode(live, node, fleet, clock);
    const partition =
      fleet.kind !== 'context' && own.has(node)
        ? await fleet.store.load(ref, clock.now())
        : emptyPartition(ref);
    return { partition, live: found };
  };
  return pMap(new Set([...own, ...shown.keys()]), read, { concurrency: PARALLEL_NODES });
}

const isSame = (one: Toleration) => (other: Toleration) =>
  JSON.stringify(objectFrom(one)) === JSON.stringify(objectFrom(other));

const objectFrom = ({ key, operator, value, effect, tolerationSeconds }: Toleration): TolerationObject => ({
  ...defined({ key, operator, value, effect }),
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds: Number(tolerationSeconds) }),
});

function podWrite(pod: ForecastPod, added: readonly Toleration[]): readonly TolerationsWrite[] {
  const { namespace, name, uid, terminating } = pod;
  const path = workloadPath({ namespace, kind: 'Pod', name });
  const list = added.map(objectFrom);
  if (!path || list.length === 0 || terminating) return [];
  const operations: readonly PatchOperation[] =
    pod.tolerations.length === 0
      ? [{ op: 'add', path: '/spec/tolerations', value: list }]
      : list.toReversed().map((value) => ({ op: 'add', path: '/spec/tolerations/0', value }));
  // A replacement of the same name doesn't get them.
  return [
    { object: `pod ${name}`, path, check: { op: 'test', path: '/metadata/uid', value: uid }, operations },
  ];
}

const templateWrite = (
  path: string,
  json: Json,
  { kind, name }: Workload,
  value: TolerationsQuestion['tolerations'],
): TolerationsWrite => ({
  object: `${kind.toLowerCase()} ${name}`,
  path,
  check: {
    op: 'replace',
    path: '/metadata/resourceVersion',
    value: fieldsOf(json['metadata'])['resourceVersion'],
  },
  operations: [{ op: 'add', path: `/${fieldPath(kind).join('/')}/tolerations`, value }],
});

const commandOf = ({ object, operations }: TolerationsWrite, namespace: string): string =>
  `kubectl patch ${object} --namespace ${namespace} --field-manager ${TOLERATIONS_MANAGER} --type json --patch '${JSON.stringify(operations)}'`;

/**
 * Makes the planned writes with the credentials of `live`, prints a line for each, and records them in the fleet's audit
 * log. Rejects with `ApiError`: earlier writes stay, and are recorded.
 */
export async function changeTolerations(
  { objects }: Pick<LiveCluster, 'objects'>,
  fleet: Fleet | ContextFleet,
  { answer, writes }: TolerationsPlan,
  { print, complain }: Readonly<Record<'print' | 'complain', (line: string) => void>>,
  reason?: string,
): Promise<void> {
  const changed: string[] = [];
  try {
    for (const { object, path, check, operations } of writes) {
      const exists = await objects.patch(path, [check, ...operations], TOLERATIONS_MANAGER).then(
        () => changed.push(object),
        (error: unknown) => {
          // The rollout that may follow removes pods meanwhile.
          if (!(error instanceof ApiError && error.status === 404)) throw error;
        },
      );
      print(exists ? `Changed ${object}.\n` : `${object} no longer exists.\n`);
    }
  } finally {
    const what = `${workloadText(answer)}: ${changed.length === 1 ? changed[0] : `${changed.length} pods`}`;
    const message = `changed tolerations of ${what}`;
    if (changed.length > 0 && fleet.kind !== 'context')
      await noteAct(fleet, answer.cluster, 'tolerations-changed', message, { complain }, reason);
  }
}

/** Another owner of the list would change it back, or is changed back itself. */
function obstaclesOf(json: Json, kind: string): readonly string[] {
  const { managedFields, ownerReferences } = fieldsOf(json['metadata']);
  const path = fieldPath(kind);
  const ownedPath = path.map((name) => `f:${name}`);
  const managers = itemsOf(managedFields)
    .map(fieldsOf)
    .filter(({ fieldsV1 }) => 'f:tolerations' in fieldsAt(fieldsV1, ownedPath))
    .map(({ manager }) => textOf(manager))
    .filter((manager) => manager !== TOLERATIONS_MANAGER);
  const controller = controllerOf(ownerReferences);
  return [
    ...[...new Set(managers)].map(
      (manager) =>
        `The field manager ${manager} owns ${path.join('.')}.tolerations: change the list there. Taintward does not force a conflict.`,
    ),
    ...(controller
      ? [
          `${textOf(controller['kind'])} ${textOf(controller['name'])} controls this ${kind}: change that one.`,
        ]
      : []),
  ];
}

const POD_EFFECTS = [
  'Running pods keep these tolerations until they are deleted. Their replacements have those of the template.',
];

const templateEffects = (json: Json, kind: string): readonly string[] => [
  rolloutText(kind, fieldsOf(json['spec'])),
  `If GitOps manages this ${kind}, it reverts the change: change the source, too.`,
];

function rolloutText(kind: string, { paused, updateStrategy }: Json): string {
  if (kind === 'Job')
    return 'API servers reject the change of a Job, unless the Job is suspended and never started. Create a new Job.';
  // Until then, the former ReplicaSet also creates the replacements of evicted pods.
  if (kind === 'Deployment' && paused === true)
    return 'This Deployment is paused: its pods and their replacements keep the former list until it is resumed. Then a rollout follows.';
  const rolls = ['Deployment', 'StatefulSet', 'DaemonSet'].includes(kind);
  return rolls && fieldsOf(updateStrategy)['type'] !== 'OnDelete'
    ? `A rollout follows: the ${kind} replaces its pods.`
    : 'Only pods that are created later get this list.';
}
