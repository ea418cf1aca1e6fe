import type { KubernetesObject, Objects } from '#shared/kubernetes/objects.ts';
import { StoreError } from '#shared/state/store.ts';
import { untilWritten } from '#shared/state/until-written.ts';
import { errorMessage } from '#shared/text/error-message.ts';

/**
 * Reads an object and writes the result of `decide`, again while other clients are faster. `decide` receives
 * `undefined` if there is none; its `undefined` writes nothing. `known`: the last read, for the first attempt. Rejects
 * with `StoreError`.
 */
export async function changeObject(
  objects: Objects,
  name: string,
  decide: (object: unknown) => KubernetesObject | undefined,
  known?: unknown,
): Promise<unknown> {
  return untilWritten<unknown>(
    async (tries) => {
      const found = (tries === 1 ? known : undefined) ?? (await orStoreError(objects.get(name)));
      const next = decide(found);
      if (next === undefined) return { result: undefined };
      const written = await writeObject(objects, next);
      return written === undefined ? undefined : { result: written };
    },
    (tries) => conflictText(name, tries),
  );
}

/**
 * Replaces the object of this version, or creates it. `undefined`: another client was faster. Rejects with
 * `StoreError`.
 */
export const writeObject = (objects: Objects, object: KubernetesObject): Promise<unknown> =>
  orStoreError(
    object.metadata.resourceVersion === undefined ? objects.create(object) : objects.replace(object),
  );

export const conflictText = (what: string, tries: number): string =>
  `Update conflict: other clients changed the object ${what} in each of ${tries} attempts. Try again.`;

/** Rejects with the API server's error as a `StoreError` with the same message, which includes the fix. */
export async function orStoreError<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw error instanceof StoreError ? error : new StoreError(errorMessage(error), { cause: error });
  }
}
