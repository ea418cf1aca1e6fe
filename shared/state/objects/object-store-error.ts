import { StoreError } from '#shared/state/store.ts';
import { errorMessage } from '#shared/text/error-message.ts';

/** What a call to the API server gave, or its failure as a `StoreError` of the same words: they say what to do. */
export async function orStoreError<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw error instanceof StoreError ? error : new StoreError(errorMessage(error), { cause: error });
  }
}
