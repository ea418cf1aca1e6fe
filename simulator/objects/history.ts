import * as z from 'zod';
import { type ApiObject, keyOf, type ResourceName, refOf } from './kinds.ts';
import { badRequest, expired } from './status.ts';

/** One change of one object, numbered by the version that it created. */
export interface Change {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: ResourceName;
  /** The object with that version; for a deletion, its last state. */
  readonly object: ApiObject;
  readonly previous: ApiObject | undefined;
}

/** The latest changes, in order: a watch may resume from them, and a list's next page may be computed from them. */
export class History {
  readonly #limit: number;
  readonly #changes: Change[] = [];
  /** The oldest version after which all changes are known. */
  #oldest: number;
  #latest: number;

  /** `version`: the version of the last change before this history; older changes are not available. */
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

  /** Returns the changes after a version. Throws 410 for a version that is no longer remembered or never existed. */
  after(version: number): readonly Change[] {
    if (!this.#reaches(version)) {
      throw expired(`too old resource version: ${version} (${this.#oldest})`);
    }
    return this.#changes.filter((change) => change.version > version);
  }

  /**
   * Returns the objects of a kind, by key, as of an earlier version: the current ones, with later changes undone. Throws 410 for
   * a version that is no longer remembered.
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

/** The position at which a list continues: after a key, as of a version. */
const continuation = z.object({ version: z.int().nonnegative(), after: z.string() });
export type Continuation = z.infer<typeof continuation>;

/** Returns a position as the opaque text that clients send back. */
export const encodeContinue = (token: Continuation): string =>
  Buffer.from(JSON.stringify(token)).toString('base64url');

/** Reads a position. Throws 400 for an invalid token. */
export function parseContinue(text: string): Continuation {
  try {
    return continuation.parse(JSON.parse(Buffer.from(text, 'base64url').toString()));
  } catch {
    throw badRequest('invalid continue token: start a new list without the continue parameter');
  }
}
