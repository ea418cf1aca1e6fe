import { fieldsOf, itemsOf, parseInt64Json, textOf } from '#shared/kubernetes/http/api-json.ts';
import { TAKEOVER_ANNOTATION } from '#shared/taints/takeover-note.ts';
import { OPTED_OUT, TAKEOVER_LABEL } from './at-pods.ts';
import { OUR_LABEL, OUR_NAME } from './manifest.ts';
import type { PodState } from './taken-tolerations.ts';

/**
 * The annotation of a pod between two patches, which says what the second is to make of it; so whoever comes after somebody
 * who died in between ends what that one began.
 */
export const MOVING_ANNOTATION = 'taintward.dev/takeover-in-progress';
/** Its name before it was renamed, which a release from before may have left. */
export const FORMER_MOVING_ANNOTATION = 'taintward.dev/takeover-moving';

/** A pod, as far as a takeover goes. */
export interface PodJson {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly resourceVersion: string;
  readonly state: PodState;
  /** What its second patch was to make of it; absent: nothing is under way. */
  readonly moving?: PodState;
  /** The annotations that say so. */
  readonly movingBy: readonly string[];
  /** It is to stay as it is: it is leaving, the kubelet's own, opted out, or one of ours: nobody waits for himself. */
  readonly untouchable: boolean;
  readonly hasAnnotations: boolean;
}

export function projectTakenPod(json: unknown): PodJson {
  const { metadata, spec } = fieldsOf(json);
  const meta = fieldsOf(metadata);
  const annotations = fieldsOf(meta['annotations']);
  const labels = fieldsOf(meta['labels']);
  const movingBy = [MOVING_ANNOTATION, FORMER_MOVING_ANNOTATION].filter(
    (name) => parseMoving(textOf(annotations[name])) !== undefined,
  );
  const moving = parseMoving(textOf(annotations[movingBy[0] ?? MOVING_ANNOTATION]));
  return {
    namespace: textOf(meta['namespace']),
    name: textOf(meta['name']),
    node: textOf(fieldsOf(spec)['nodeName']),
    resourceVersion: textOf(meta['resourceVersion']),
    state: {
      tolerations: itemsOf(fieldsOf(spec)['tolerations']).map(fieldsOf),
      note: textOf(annotations[TAKEOVER_ANNOTATION]),
    },
    ...(moving ? { moving } : {}),
    movingBy,
    untouchable:
      textOf(meta['deletionTimestamp']) !== '' ||
      'kubernetes.io/config.mirror' in annotations ||
      OPTED_OUT.includes(textOf(labels[TAKEOVER_LABEL])) ||
      labels[OUR_LABEL] === OUR_NAME,
    hasAnnotations: meta['annotations'] !== undefined,
  };
}

/** `undefined`: nothing is under way. What cannot be read was written by nobody of us, and begins nothing. */
function parseMoving(text: string): PodState | undefined {
  let json: unknown;
  try {
    json = parseInt64Json(text);
  } catch {
    return undefined;
  }
  const { tolerations, note } = fieldsOf(json);
  return Array.isArray(tolerations)
    ? { tolerations: tolerations.map(fieldsOf), note: textOf(note) }
    : undefined;
}
