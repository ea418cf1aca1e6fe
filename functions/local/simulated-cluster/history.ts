import type { ApiObject, ResourceName } from './objects.ts';

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
  #forgotten: number;

  /** `version`: that of the last change before this history; older ones are forgotten already. */
  constructor(limit: number, version: number) {
    this.#limit = limit;
    this.#forgotten = version;
  }

  add(change: Change): void {
    this.#changes.push(change);
    if (this.#changes.length > this.#limit)
      this.#forgotten = this.#changes.shift()?.version ?? this.#forgotten;
  }

  /** The oldest version whose successors are all known. */
  get oldest(): number {
    return this.#forgotten;
  }

  /** What changed after a version; only for versions from {@link oldest} on. */
  after(version: number): readonly Change[] {
    return this.#changes.filter((change) => change.version > version);
  }
}
