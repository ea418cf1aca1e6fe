import { AccessError } from '#shared/access/access-error.ts';
import type { Known } from '#shared/explain/known.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { StoreError } from '#shared/state/store.ts';
import { FleetError } from '../fleet/fleet.ts';

/** Why a fact could not be had: its message is made for operators. */
const REFUSALS = [AccessError, ApiError, FleetError, KubeconfigError, StoreError];

/** What is asked for, or why it cannot be had. Rejects with what is nobody's refusal. */
export async function factOf<T>(ask: () => Promise<T>): Promise<Known<T>> {
  try {
    return { value: await ask() };
  } catch (error) {
    if (!REFUSALS.some((kind) => error instanceof kind)) throw error;
    // What it is told in ends the sentence.
    return { unknown: (error as Error).message.replace(/\.$/, '') };
  }
}
