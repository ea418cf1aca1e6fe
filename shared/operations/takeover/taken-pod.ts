import { fieldsOf, itemsOf, parseInt64Json, textOf } from '#shared/kubernetes/http/api-json.ts';
import { TAKEOVER_ANNOTATION } from '#shared/taints/takeover-note.ts';
import { OPTED_OUT, TAKEOVER_LABEL } from './at-pods.ts';
import { OUR_LABEL, OUR_NAME } from './manifest.ts';
import type { PodState } from './taken-tolerations.ts';

/**
 * The annotation of a pod between two patches. It contains the result of the second, so another run can
 * complete the change if the first run ends in between.
 */
export const MOVING_ANNOTATION = 'taintward.dev/takeover-in-progress';
/** Its former name, which an older release may have left. */
export const FORMER_MOVING_ANNOTATION = 'taintward.dev/takeover-moving';

/** The fields of a pod that a takeover uses. */
export interface PodJson {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  readonly resourceVersion: string;
  readonly state: PodState;
  /** Result of its second patch. Absent: no change is in progress. */
  readonly moving?: PodState;
  /** Annotations that contain this result. */
  readonly movingBy: readonly string[];
  /**
   * True if the pod must not be changed: it is terminating, a mirror pod, opted out, or Taintward's own,
   * which can't wait for itself.
   */
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

/**
 * Reads the annotation. `undefined`: no change is in progress. Unreadable text isn't Taintward's, so it is
 * ignored.
 */
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
