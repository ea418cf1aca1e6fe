import fc from 'fast-check';
import { matchesLabels } from '#shared/eviction/gate.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { parseInt64Json, stringifyInt64Json } from '#shared/kubernetes/http/api-json.ts';
import { projectPod } from '#shared/kubernetes/project.ts';
import { isAlive, projectTakeover, renewalPatch } from '#shared/kubernetes/takeover.ts';
import { spoilt } from './hostile.ts';
import type { Kind, Outcome } from './kind.ts';
import { must, refusal } from './refusal.ts';

const UNREACHABLE = 'node.kubernetes.io/unreachable';
const NOW = Date.UTC(2026, 10, 22, 12);
const TOLERATIONS = [
  { key: UNREACHABLE, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 3_900 },
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
  { key: 'team', operator: 'Equal', value: 'a', effect: 'NoExecute' },
  { operator: 'Exists' },
];
const LABELS = { app: 'web', 'topology.kubernetes.io/zone': 'a' };
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
  readonly labels: unknown;
  readonly tolerations: unknown;
  readonly annotations: unknown;
  readonly takeover: unknown;
}

const written: fc.Arbitrary<Written> = fc.record({
  labels: spoilt([LABELS]),
  tolerations: spoilt([TOLERATIONS]),
  annotations: spoilt([{ 'example.com/a': 'b' }]),
  takeover: spoilt([TAKEOVER]),
});

/**
 * Annotations, labels and tolerations of pods, and the takeover's heartbeat. A user who may write them can't affect the
 * handling of other pods.
 */
export const annotations: Kind<Written> = {
  name: 'annotations',
  open: async () => ({ inputs: written, feed, close: () => undefined }),
};

async function feed(given: Written): Promise<Outcome> {
  const { labels, tolerations, takeover } = given;
  const json = (value: unknown) => parseInt64Json(JSON.stringify(value) ?? 'null');
  const pod = json({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web-0',
      namespace: 'shop',
      uid: 'u1',
      resourceVersion: '5',
      creationTimestamp: '2026-11-22T11:00:00Z',
      labels,
      annotations: given.annotations,
    },
    spec: { nodeName: 'n1', tolerations },
  });
  const outcome = readPod(pod);
  const read = projectTakeover(json(takeover));
  isAlive(read, NOW);
  try {
    stringifyInt64Json(renewalPatch(read, NOW));
  } catch (error) {
    throw new Error(`a heartbeat cannot be renewed: ${error}`, { cause: error });
  }
  return read.heartbeat === undefined ? 'refused' : outcome;
}

function readPod(json: unknown): Outcome {
  let pod: ReturnType<typeof projectPod>;
  try {
    pod = projectPod(json);
  } catch (error) {
    return refusal(error, [ApiError]);
  }
  const { labels = {} } = pod;
  for (const key of ['constructor', 'toString', '__proto__', 'app']) {
    const exists = matchesLabels({ matchExpressions: [{ key, operator: 'Exists' }] }, labels);
    must(exists === Object.hasOwn(labels, key), `a pod has a label ${key} that nobody gave it`);
  }
  return 'accepted';
}
