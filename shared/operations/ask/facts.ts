import { AccessError } from '#shared/access/access-error.ts';
import type { Fact } from '#shared/explain/known.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { OperatorError } from '#shared/state/operator.ts';
import { StoreError } from '#shared/state/store.ts';
import { FleetError } from '../fleet/fleet.ts';

/** Errors that make a fact unknown. Their messages are for operators. */
const REFUSALS = [AccessError, ApiError, FleetError, KubeconfigError, OperatorError, StoreError];

/** Returns a fact, or the reason why it is unknown. Rejects with any other error. */
export async function factOf<T>(ask: () => Promise<T>): Promise<Fact<T>> {
  try {
    return { value: await ask() };
  } catch (error) {
    if (!REFUSALS.some((kind) => error instanceof kind)) throw error;
    // The surrounding text adds its own period.
    return { unknown: (error as Error).message.replace(/\.$/, '') };
  }
}
