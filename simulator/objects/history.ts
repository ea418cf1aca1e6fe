import * as z from 'zod';
import { type ApiObject, keyOf, type ResourceName, refOf } from './kinds.ts';
import { badRequest, expired } from './status.ts';

/** One change of one object, numbered by the version it made. */
export interface Change {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: ResourceName;
  /** With that version; of a deleted object its last state. */
  readonly object: ApiObject;
  readonly previous: ApiObject | undefined;
}

/** The latest changes, in order: what a watch may resume from and a list's next page may go back to. */
export class History {
  readonly #limit: number;
  readonly #changes: Change[] = [];
  /** The oldest version whose successors are all known. */
  #oldest: number;
  #latest: number;

  /** `version`: that of the last change before this history; older ones are forgotten already. */
  constructor(limit: number, version: number) {
    this.#limit = limit;
    this.#oldest = version;
    this.#latest = version;
  }

  /** The version of the last change. */
  get latest(): number {
    return this.#latest;
  }

  add(change: Change): void {
    this.#latest = change.version;
    this.#changes.push(change);
    if (this.#changes.length > this.#limit) this.#oldest = this.#changes.shift()?.version ?? this.#oldest;
  }

  /** What changed after a version. Throws 410 for one that is forgotten, or that was never given out. */
  after(version: number): readonly Change[] {
    if (!this.#reaches(version)) {
      throw expired(`too old resource version: ${version} (${this.#oldest})`);
    }
    return this.#changes.filter((change) => change.version > version);
  }

  /**
   * The objects of a kind, by key, as of an earlier version: the present ones, with what came later undone. Throws
   * 410 for a version that is forgotten.
   */
  asOf(
    version: number,
    resource: ResourceName,
    present: ReadonlyMap<string, ApiObject>,
  ): ReadonlyMap<string, ApiObject> {
    if (!this.#reaches(version)) {
      throw expired(
        'The provided continue parameter is too old to display a consistent list result. You must start a new ' +
          'list without the continue parameter.',
      );
    }
    const objects = new Map(present);
    for (const change of this.after(version).toReversed()) {
      if (change.resource !== resource) continue;
      const key = keyOf(refOf(change.object));
      if (change.previous === undefined) objects.delete(key);
      else objects.set(key, change.previous);
    }
    return objects;
  }

  #reaches(version: number): boolean {
    return version >= this.#oldest && version <= this.#latest;
  }
}

/** Where a list goes on: behind a key, as of a version. */
const continuation = z.object({ version: z.int().nonnegative(), after: z.string() });
export type Continuation = z.infer<typeof continuation>;

/** As the opaque text that clients hand back. */
export const encodeContinue = (token: Continuation): string =>
  Buffer.from(JSON.stringify(token)).toString('base64url');

/** Throws 400 for what is no token of ours. */
export function parseContinue(text: string): Continuation {
  try {
    return continuation.parse(JSON.parse(Buffer.from(text, 'base64url').toString()));
  } catch {
    throw badRequest('invalid continue token: start a new list without the continue parameter');
  }
}
