import type { EpochMs, PodUid } from '#shared/eviction/identity.ts';
import { kubernetesTime } from './kubernetes-time.ts';

/** `v1.PodReasonDeletionByTaintManager`: why the condition `DisruptionTarget` was set. */
export const TAINT_MANAGER_REASON = 'DeletionByTaintManager';

/**
 * The strategic merge patch of a pod's status by which the built-in controller announces an eviction
 * (`addConditionAndDeletePod`): the UID guards against a pod recreated under the same name, the condition is
 * merged by its type, and `observedGeneration` is left out where the server counts no generations (0).
 */
export function disruptionPatch(uid: PodUid, generation: number, now: EpochMs): object {
  return {
    metadata: { uid },
    status: {
      conditions: [
        {
          type: 'DisruptionTarget',
          ...(generation > 0 ? { observedGeneration: generation } : {}),
          status: 'True',
          lastTransitionTime: kubernetesTime(now),
          reason: TAINT_MANAGER_REASON,
          message: 'Taint manager: deleting due to NoExecute taint',
        },
      ],
    },
  };
}
