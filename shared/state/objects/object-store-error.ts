import { StoreError } from '#shared/state/store.ts';
import { errorMessage } from '#shared/text/error-message.ts';

/**
 * Resolves with the response to a call of the API server. Rejects with its error as a `StoreError` with the same
 * message, which includes the fix.
 */
export async function orStoreError<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw error instanceof StoreError ? error : new StoreError(errorMessage(error), { cause: error });
  }
}
