import type { KubernetesObject, Objects } from '#shared/kubernetes/objects.ts';
import { StoreError } from '#shared/state/store.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import { orStoreError } from './object-store-error.ts';

/** Maximum of attempts at a change while other clients' changes succeed first. */
const MAX_TRIES = 30;
const BACKOFF: Backoff = { firstMs: 5, longestMs: 250 };

/**
 * Repeats a write while other clients are faster (`undefined`), and resolves with its result. `what`: the name of the
 * object. Rejects with `StoreError`.
 */
export async function untilWritten<T>(
  what: string,
  write: (tries: number) => Promise<T | undefined>,
): Promise<T> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const written = await write(tries);
    if (written !== undefined) return written;
    await pause(backoffMs(tries, BACKOFF));
  }
  throw new StoreError(
    `Update conflict: other clients changed the object ${what} in each of ${MAX_TRIES} attempts. Try again.`,
  );
}

/**
 * Reads an object and writes the result of `decide`, again while other clients are faster. `decide` receives
 * `undefined` if there is no object, and then returns a new one. `known`: the object as it was read last, for the
 * first attempt. Resolves with the stored object. `undefined`: `decide` wants nothing written. Rejects with
 * `StoreError`.
 */
export async function changeObject(
  objects: Objects,
  name: string,
  decide: (object: unknown) => KubernetesObject | undefined,
  known?: unknown,
): Promise<unknown> {
  const { stored } = await untilWritten(name, async (tries) => {
    const found = (tries === 1 ? known : undefined) ?? (await orStoreError(objects.get(name)));
    const next = decide(found);
    if (next === undefined) return { stored: undefined };
    const written = await writeObject(objects, next);
    return written === undefined ? undefined : { stored: written };
  });
  return stored;
}

/**
 * Replaces the object of this resource version, or creates an object that has none. Resolves with the stored object.
 * `undefined`: another client was faster. Rejects with `StoreError`.
 */
export const writeObject = (objects: Objects, object: KubernetesObject): Promise<unknown> =>
  orStoreError(
    object.metadata.resourceVersion === undefined ? objects.create(object) : objects.replace(object),
  );
