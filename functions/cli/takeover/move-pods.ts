import pMap from 'p-map';
import type { Progress } from '#functions/cli/progress.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { stringifyInt64Json } from '#shared/kubernetes/http/api-json.ts';
import type { ClusterObjects, PatchOperation } from '#shared/operations/fleet/cluster-objects.ts';
import { MOVING_ANNOTATION, type PodJson, projectTakenPod } from '#shared/operations/takeover/taken-pod.ts';
import {
  type PodState,
  type TolerationJson,
  timeless,
} from '#shared/operations/takeover/taken-tolerations.ts';
import { TAKEOVER_ANNOTATION } from '#shared/taints/takeover-note.ts';

const MAX_CONCURRENT_PODS = 10;
/** Attempts for a pod that another client changes at the same time. */
const TRIES = 5;

/** Result of changing pods. */
export interface Moves {
  readonly moved: number;
  /** Error messages by namespace/name, for the pods that could not be changed. */
  readonly failed: ReadonlyMap<string, string>;
}

/**
 * Changes each pod to its `wanted` state (`undefined`: no change). A pod on a node with a NoExecute taint
 * needs two patches. The first removes the time limits that change. A pod that was deleted, or that another
 * client changes at the same time, is read again.
 */
export async function movePods(
  objects: ClusterObjects,
  pods: AsyncIterable<PodJson>,
  taintedNodes: ReadonlySet<string>,
  progress: Progress,
  wanted: (pod: PodJson) => PodState | undefined,
): Promise<Moves> {
  let moved = 0;
  let looked = 0;
  const failed = new Map<string, string>();
  await pMap(
    pods,
    async (pod) => {
      try {
        if (await move(objects, pod, taintedNodes, wanted)) moved += 1;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        failed.set(`${pod.namespace}/${pod.name}`, error.message);
      }
      looked += 1;
      progress(`Pods looked at: ${looked}, changed: ${moved}, failed: ${failed.size}`);
    },
    { concurrency: MAX_CONCURRENT_PODS },
  );
  progress();
  return { moved, failed };
}

/** Returns the number of pods that {@link movePods} would change. */
export async function countMoves(
  pods: AsyncIterable<PodJson>,
  wanted: (pod: PodJson) => PodState | undefined,
): Promise<number> {
  let count = 0;
  for await (const pod of pods) if (pod.moving ?? wanted(pod)) count += 1;
  return count;
}

async function move(
  objects: ClusterObjects,
  first: PodJson,
  taintedNodes: ReadonlySet<string>,
  wanted: (pod: PodJson) => PodState | undefined,
): Promise<boolean> {
  const path = pathOfPod(first);
  let changed = false;
  let pod: PodJson | undefined = first;
  for (let tries = 0; pod && tries < TRIES; tries++) {
    const next: PodState | undefined = pod.moving ?? wanted(pod);
    if (!next) return changed;
    const twice = pod.moving === undefined && taintedNodes.has(pod.node);
    try {
      await objects.patch(path, twice ? suspension(pod, next) : completion(pod, next));
      changed = true;
    } catch (error) {
      if (!(error instanceof ApiError) || ![404, 409, 422].includes(error.status)) throw error;
      if (tries === TRIES - 1) throw error;
    }
    const json = await objects.get(path);
    pod = json && projectTakenPod(json);
  }
  return changed;
}

/** Returns the first of two patches, after which the built-in controller forgets the pod. */
function suspension(pod: PodJson, next: PodState): readonly PatchOperation[] {
  return [
    unchanged(pod),
    ...withTolerations(timeless(pod.state, next)),
    ...annotate(pod, MOVING_ANNOTATION, stringifyInt64Json(next)),
  ];
}

/** Returns the only patch, or the second of two. */
function completion(pod: PodJson, next: PodState): readonly PatchOperation[] {
  return [
    unchanged(pod),
    ...withTolerations(next.tolerations),
    ...pod.movingBy.map((name) => ({ op: 'remove', path: annotationPath(name) }) as const),
    ...(next.note !== ''
      ? annotate(pod, TAKEOVER_ANNOTATION, next.note)
      : pod.state.note === ''
        ? []
        : [{ op: 'remove', path: annotationPath(TAKEOVER_ANNOTATION) } as const]),
  ];
}

const unchanged = ({ resourceVersion }: PodJson): PatchOperation => ({
  op: 'test',
  path: '/metadata/resourceVersion',
  value: resourceVersion,
});

const withTolerations = (value: readonly TolerationJson[]): readonly PatchOperation[] => [
  { op: 'add', path: '/spec/tolerations', value },
];

const annotate = ({ hasAnnotations }: PodJson, key: string, value: string): readonly PatchOperation[] => [
  ...(hasAnnotations ? [] : [{ op: 'add', path: '/metadata/annotations', value: {} } as const]),
  { op: 'add', path: annotationPath(key), value },
];

const annotationPath = (key: string): string =>
  `/metadata/annotations/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;

const pathOfPod = ({ namespace, name }: PodJson): string => `/api/v1/namespaces/${namespace}/pods/${name}`;
