import fc from 'fast-check';
import { movePods } from '#functions/cli/takeover/move-pods.ts';
import { matchesLabels } from '#shared/eviction/gate.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, parseInt64Json, stringifyInt64Json } from '#shared/kubernetes/http/api-json.ts';
import { projectPod } from '#shared/kubernetes/project.ts';
import { isAlive, projectTakeover, renewalPatch } from '#shared/kubernetes/takeover.ts';
import { lintCluster, lintManifests } from '#shared/operations/ask/lint.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { POD_TAKEOVER } from '#shared/operations/takeover/at-pods.ts';
import { projectTakenPod } from '#shared/operations/takeover/taken-pod.ts';
import { restored, takenOver } from '#shared/operations/takeover/taken-tolerations.ts';
import { hostileJson, spoilt, torn } from './hostile.ts';
import type { Kind, Outcome } from './kind.ts';
import { must, refusal, sentence } from './refusal.ts';

const UNREACHABLE = 'node.kubernetes.io/unreachable';
const NOW = Date.UTC(2026, 10, 22, 12);
const NOTES = [`${UNREACHABLE}=300+3600,node.kubernetes.io/not-ready=300+3600`, `${UNREACHABLE}=0+1`];
const TOLERATIONS = [
  { key: UNREACHABLE, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 3_900 },
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
  { key: 'team', operator: 'Equal', value: 'a', effect: 'NoExecute' },
  { operator: 'Exists' },
];
const LABELS = { app: 'web', 'topology.kubernetes.io/zone': 'a', 'taintward.dev/takeover': 'enabled' };
const TAKEOVER = {
  metadata: { name: 'live', resourceVersion: '7' },
  spec: {
    keys: [UNREACHABLE],
    lapseSeconds: 90,
    heartbeat: '2026-11-22T11:59:30Z',
    aliveSince: '2026-11-22T11:00:00Z',
  },
};

/** The values that users, controllers and other installations wrote into objects. */
interface Written {
  readonly note: string;
  readonly moving: string;
  readonly whitelist: string;
  readonly labels: unknown;
  readonly tolerations: unknown;
  readonly annotations: unknown;
  readonly takeover: unknown;
}

/** Mostly valid texts, so that the other fields of the input are read too. */
const mostly = (right: string, hostile: fc.Arbitrary<string>) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(right) }, { weight: 3, arbitrary: hostile });
const moved = { tolerations: TOLERATIONS, note: NOTES[0] };

const written: fc.Arbitrary<Written> = fc.record({
  note: mostly(NOTES[0] ?? '', torn(NOTES)),
  moving: mostly('', hostileJson([moved])),
  whitelist: mostly('[]', hostileJson([TOLERATIONS])),
  labels: spoilt([LABELS]),
  tolerations: spoilt([TOLERATIONS]),
  annotations: spoilt([{ 'example.com/a': 'b' }]),
  takeover: spoilt([TAKEOVER]),
});

/**
 * Annotations, labels and tolerations of pods and namespaces, as the takeover reads them. A user who may write them can at most
 * shorten the time of their own pod, and can't affect the handling of other pods.
 */
export const annotations: Kind<Written> = {
  name: 'annotations',
  open: async () => ({ inputs: written, feed, close: () => undefined }),
};

async function feed(given: Written): Promise<Outcome> {
  const { note, moving, whitelist, labels, tolerations, takeover } = given;
  const json = (value: unknown) => parseInt64Json(JSON.stringify(value) ?? 'null');
  const own = Object.entries({
    'taintward.dev/takeover': note,
    'taintward.dev/takeover-in-progress': moving,
  });
  const pod = json({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...{ name: 'web-0', namespace: 'shop', uid: 'u1', resourceVersion: '5' },
      creationTimestamp: '2026-11-22T11:00:00Z',
      labels,
      annotations: {
        ...fieldsOf(given.annotations),
        ...Object.fromEntries(own.filter(([, text]) => text !== '')),
      },
    },
    spec: { nodeName: 'n1', tolerations },
  });
  const outcomes = [readPod(pod), await movePod(pod), await lint(pod, json(labels), whitelist)];
  const read = projectTakeover(json(takeover));
  isAlive(read, NOW);
  try {
    stringifyInt64Json(renewalPatch(read, NOW));
  } catch (error) {
    throw new Error(`a heartbeat cannot be renewed: ${error}`, { cause: error });
  }
  return outcomes.includes('refused') ? 'refused' : 'accepted';
}

function readPod(json: unknown): Outcome {
  let pod: ReturnType<typeof projectPod>;
  try {
    pod = projectPod(json);
  } catch (error) {
    return refusal(error, [ApiError]);
  }
  for (const { tolerationSeconds, ownSeconds } of pod.tolerations) {
    if (ownSeconds === undefined) continue;
    must(tolerationSeconds !== undefined && ownSeconds < tolerationSeconds, 'a note lengthens a stay');
    must(ownSeconds >= 0n, 'a note says less than nothing');
  }
  const { labels = {} } = pod;
  for (const key of ['constructor', 'toString', '__proto__', 'app']) {
    const exists = matchesLabels({ matchExpressions: [{ key, operator: 'Exists' }] }, labels);
    must(exists === Object.hasOwn(labels, key), `a pod has a label ${key} that nobody gave it`);
  }
  return 'accepted';
}

/** Adopts and releases the pod, and a second, valid pod. */
async function movePod(json: unknown): Promise<Outcome> {
  const good = projectTakenPod({
    metadata: { name: 'good', namespace: 'shop', resourceVersion: '5', annotations: {} },
    spec: { nodeName: 'n1', tolerations: TOLERATIONS.slice(1) },
  });
  let outcome: Outcome = 'accepted';
  for (const node of ['n1', 'n2']) {
    for (const wanted of [
      (pod: typeof good) => restored(pod.state),
      (pod: typeof good) => takenOver(pod.state, POD_TAKEOVER),
    ]) {
      const patched = new Set<string>();
      const objects = {
        patch: async (path: string, operations: object) => {
          stringifyInt64Json(operations);
          patched.add(path);
        },
        get: async () => undefined,
      } as unknown as ClusterObjects;
      const pods = (async function* () {
        yield projectTakenPod(json);
        yield good;
      })();
      const { failed } = await movePods(objects, pods, new Set([node]), () => undefined, wanted);
      for (const reason of failed.values()) sentence(reason);
      if (failed.size > 0) outcome = 'refused';
      must(!failed.has('shop/good'), 'keeps another pod from being moved');
    }
  }
  return outcome;
}

async function lint(pod: unknown, labels: unknown, whitelist: string): Promise<Outcome> {
  const objects = {
    async *list(path: string) {
      if (path === '/api/v1/pods') yield pod;
      if (path === '/api/v1/namespaces') {
        yield {
          metadata: {
            name: 'shop',
            labels,
            annotations: { 'scheduler.alpha.kubernetes.io/tolerationsWhitelist': whitelist },
          },
        };
      }
    },
  };
  const fleet = { cluster: async () => ({ objects, close: () => undefined }) } as unknown as Fleet;
  const matching = { comparisonOperators: true };
  const { findings } = await lintCluster(
    fleet,
    { cluster: clusterName('prod'), matching },
    { now: () => NOW, progress: () => undefined },
  );
  const { findings: ofText } = lintManifests(
    [{ name: 'f', text: stringifyInt64Json(pod as object) }],
    matching,
  );
  for (const { message, remediation } of [...findings, ...ofText])
    for (const text of [message, remediation]) sentence(text);
  return findings.length > 0 ? 'refused' : 'accepted';
}
