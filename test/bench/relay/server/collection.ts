import type { Template, Values } from './template.ts';

/** The type of a watch event. */
export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** One line of a watch. */
export interface Change {
  readonly version: number;
  readonly node: number;
  readonly line: () => Buffer;
}

/** The numbering and the format of a kind of objects. */
export interface Kind<State> {
  readonly name: 'Node' | 'Pod';
  /** Objects have numbers below this. */
  readonly places: number;
  initial(place: number): State;
  object(place: number, state: State): readonly [Template, Values];
  /** Returns the number of the node that it is, or that it is bound to. */
  nodeOf(place: number): number;
}

/** The maximum length of the history; an older start is answered with 410. */
const HISTORY = 50_000;

/**
 * All objects of one kind in a cluster. Only objects that differ from their initial state are stored. Pages of one list
 * may have different versions; the watch repeats changes that a later page showed too early.
 */
export class Collection<State extends { readonly version: number; readonly present?: boolean }> {
  readonly kind: Kind<State>;
  readonly #changed = new Map<number, State>();
  #history: Change[] = [];
  /** A watch before this version is rejected, and the client has to list. */
  #forgotten: number;
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #listenersByNode = new Map<number, Set<(change: Change) => void>>();

  constructor(kind: Kind<State>, version: number) {
    this.kind = kind;
    this.#forgotten = version;
  }

  state(place: number): State {
    return this.#changed.get(place) ?? this.kind.initial(place);
  }

  /** Returns the template and values of an object; `undefined` when there is none at this place. */
  object(place: number): readonly [Template, Values] | undefined {
    const state = this.state(place);
    return state.present === false ? undefined : this.kind.object(place, state);
  }

  /** Returns the event of an object for a watch that begins now; `undefined` when there is none at this place. */
  added(place: number): Buffer | undefined {
    const state = this.state(place);
    return state.present === false ? undefined : watchLine('ADDED', this.kind, place, state);
  }

  /** Changes an object and sends the change to the watches. */
  put(place: number, state: State, type: EventType): void {
    this.#changed.set(place, state);
    // The line is serialized once for all present listeners, and again for each late one, to keep the history small.
    let shared: Buffer | undefined;
    let isNotifying = true;
    const node = this.kind.nodeOf(place);
    const line = (): Buffer => {
      const written = shared ?? watchLine(type, this.kind, place, state);
      if (isNotifying) shared = written;
      return written;
    };
    const change: Change = { version: state.version, node, line };
    this.#history.push(change);
    if (this.#history.length > 2 * HISTORY) {
      this.#forgotten = this.#history[HISTORY - 1]?.version ?? this.#forgotten;
      this.#history = this.#history.slice(HISTORY);
    }
    for (const listen of this.#listeners) listen(change);
    for (const listen of this.#listenersByNode.get(node) ?? []) listen(change);
    isNotifying = false;
    shared = undefined;
  }

  /** Forgets the history: watches can begin only at `version` or later. */
  forget(version: number): void {
    this.#history = [];
    this.#forgotten = version;
  }

  /** Returns the changes after `version`, of all objects or one node's; `undefined` when some are forgotten. */
  since(version: number, node?: number): readonly Change[] | undefined {
    if (version < this.#forgotten) return undefined;
    let first = this.#history.length;
    while (first > 0 && (this.#history[first - 1]?.version ?? 0) > version) first -= 1;
    const later = this.#history.slice(first);
    return node === undefined ? later : later.filter((change) => change.node === node);
  }

  /**
   * Passes each change from now on, of all objects or one node's, to the listener until the returned function is
   * called.
   */
  listen(listener: (change: Change) => void, node?: number): () => void {
    if (node === undefined) {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    }
    const ofNode = this.#listenersByNode.get(node) ?? new Set();
    this.#listenersByNode.set(node, ofNode.add(listener));
    return () => {
      ofNode.delete(listener);
      if (ofNode.size === 0) this.#listenersByNode.delete(node);
    };
  }
}

/** Returns the line of a watch event. It contains the object's kind, which a list states once for all. */
function watchLine<State>(type: EventType, kind: Kind<State>, place: number, state: State): Buffer {
  const [template, values] = kind.object(place, state);
  const object = `{"kind":"${kind.name}","apiVersion":"v1",${template.text(values).slice(1)}`;
  return Buffer.from(`{"type":"${type}","object":${object}}\n`, 'latin1');
}
