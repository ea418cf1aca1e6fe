import type { Template, Values } from './template.ts';

/** What happened to an object, in the words of a watch. */
export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** One line of a watch. */
export interface Change {
  readonly version: number;
  readonly node: number;
  readonly line: () => Buffer;
}

/** How a kind of objects is numbered and written. */
export interface Kind<State> {
  readonly name: 'Node' | 'Pod';
  /** Objects have numbers below this. */
  readonly places: number;
  initial(place: number): State;
  object(place: number, state: State): readonly [Template, Values];
  /** The number of the node it is, or is bound to. */
  nodeOf(place: number): number;
}

/** Changes that a watch may still begin before; what is older is answered with 410. */
const HISTORY = 50_000;

/**
 * All objects of one kind in a cluster, of which only those are kept that differ from what their number says. Pages
 * of one list may be of different versions; what the later ones know too early is told by the watch once more.
 */
export class Collection<State extends { readonly version: number; readonly present?: boolean }> {
  readonly kind: Kind<State>;
  readonly #changed = new Map<number, State>();
  #history: Change[] = [];
  /** Whoever wants to begin before this has to list. */
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

  /** The template and values of an object; `undefined` when there is none at this place. */
  object(place: number): readonly [Template, Values] | undefined {
    const state = this.state(place);
    return state.present === false ? undefined : this.kind.object(place, state);
  }

  /** What a watch that begins now tells of an object; `undefined` when there is none at this place. */
  added(place: number): Buffer | undefined {
    const state = this.state(place);
    return state.present === false ? undefined : watchLine('ADDED', this.kind, place, state);
  }

  /** Changes an object and tells the watches. */
  put(place: number, state: State, type: EventType): void {
    this.#changed.set(place, state);
    // Written once for all who listen now, and anew for each that comes late: the history is to be small.
    let shared: Buffer | undefined;
    let telling = true;
    const node = this.kind.nodeOf(place);
    const line = (): Buffer => {
      const written = shared ?? watchLine(type, this.kind, place, state);
      if (telling) shared = written;
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
    telling = false;
    shared = undefined;
  }

  /** Forgets the history: watches can begin at `version` or later only. */
  forget(version: number): void {
    this.#history = [];
    this.#forgotten = version;
  }

  /** The changes after `version`, of all objects or one node's; `undefined` when some are forgotten. */
  since(version: number, node?: number): readonly Change[] | undefined {
    if (version < this.#forgotten) return undefined;
    let first = this.#history.length;
    while (first > 0 && (this.#history[first - 1]?.version ?? 0) > version) first -= 1;
    const later = this.#history.slice(first);
    return node === undefined ? later : later.filter((change) => change.node === node);
  }

  /** Tells each change from now on, of all objects or one node's, until the returned function is called. */
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

/** An event as a watch writes it: with what kind of object it is, which a list says once for all. */
function watchLine<State>(type: EventType, kind: Kind<State>, place: number, state: State): Buffer {
  const [template, values] = kind.object(place, state);
  const object = `{"kind":"${kind.name}","apiVersion":"v1",${template.text(values).slice(1)}`;
  return Buffer.from(`{"type":"${type}","object":${object}}\n`, 'latin1');
}
