import { DELTA_MAX_AGE_MS, type Delta } from '#shared/eviction/facts.ts';
import { type NodeName, nodeName, type PodUid } from '#shared/eviction/identity.ts';
import type { OutgoingMessage } from '#shared/state/sender.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** What one relay has seen of each node, in order: numbers of states. */
type Seen = Map<NodeName, number[]>;

/** What a delta tells of. */
interface Word {
  readonly node: NodeName;
  readonly seen: readonly number[];
  readonly epoch: number;
  /** Whether its relay had the lease when it was sent. */
  readonly leased: boolean;
  readonly observedAt: EpochMs;
}

/** What the service has been told of one node. */
interface Told {
  /** When each state was first told of that some relay saw which had the lease when it told. */
  readonly states: Map<number, EpochMs>;
  /** When each of them was first told of for certain by a relay that held the lease, and by which. */
  readonly decided: Map<number, { readonly at: EpochMs; readonly epoch: number }>;
  /** When each state may first have been told of as the node's newest. */
  readonly newest: Map<number, EpochMs>;
}

/**
 * What the service can know of one cluster's nodes, by what its relays saw and what of that its handlers took. States
 * go by their numbers in the truth.
 */
export class Knowledge {
  readonly #relays = new Map<number, Seen>();
  /** Of the lease, the newest. */
  #epoch = 0;
  /** By their deduplication ids. */
  readonly #words = new Map<string, Word>();
  readonly #told = new Map<NodeName, Told>();
  /** By relay, and the first of all. */
  readonly #podsSeen = new Sights<PodUid>();
  readonly #statesSeen = new Sights<number>();

  /** A relay takes the lease. */
  leaseTaken(epoch: number): void {
    this.#epoch = Math.max(this.#epoch, epoch);
  }

  /** A relay sees a state of a node. */
  seen(epoch: number, node: NodeName, state: number, at: EpochMs): void {
    this.#statesSeen.note(epoch, state, at);
    const relay = this.#relays.get(epoch) ?? new Map<NodeName, number[]>();
    this.#relays.set(epoch, relay);
    const states = relay.get(node) ?? [];
    relay.set(node, states);
    if (states.at(-1) !== state) states.push(state);
  }

  /** A relay sees a pod. */
  podSeen(epoch: number, uid: PodUid, at: EpochMs): void {
    this.#podsSeen.note(epoch, uid, at);
  }

  /**
   * Whether a relay saw a pod before one saw a state of its node. Where the relay whose word on that state counts saw the node before,
   * it must have seen the pod itself: what another knows, which has lost the lease, it does not.
   */
  podSeenBefore(uid: PodUid, node: NodeName, state: number): boolean {
    const epoch = this.#toldOf(node).decided.get(state)?.epoch;
    const watched = epoch !== undefined && this.#relays.get(epoch)?.get(node)?.[0] !== state;
    const by = watched ? epoch : undefined;
    return this.#podsSeen.at(uid, by) < this.#statesSeen.at(state, by);
  }

  /** When a relay first saw a state; never: at the end of time. */
  seenAt(state: number): EpochMs {
    return this.#statesSeen.at(state);
  }

  /** A relay sends a delta, which it made just now. */
  sent({ body, deduplicationId = '' }: OutgoingMessage): void {
    const {
      node: name,
      version,
      observedAt,
    }: Pick<Delta, 'version' | 'observedAt'> & { node: string } = JSON.parse(body);
    const node = nodeName(name);
    const { epoch } = version;
    const seen = this.#relays.get(epoch)?.get(node) ?? [];
    this.#words.set(deduplicationId, {
      ...{ node, seen: [...seen], epoch, observedAt },
      leased: epoch >= this.#epoch,
    });
  }

  /** A handler is handed a delta: from now on it may count. */
  handed({ deduplicationId = '' }: OutgoingMessage, at: EpochMs): void {
    const word = this.#words.get(deduplicationId);
    const state = word?.seen.at(-1);
    if (!word || state === undefined) return;
    const { newest } = this.#toldOf(word.node);
    if (!newest.has(state)) newest.set(state, at);
  }

  /** A handler is done with a delta: from now on it counts. */
  taken({ deduplicationId = '' }: OutgoingMessage, at: EpochMs): void {
    const word = this.#words.get(deduplicationId);
    if (!word) return;
    const { states, decided } = this.#toldOf(word.node);
    // Whoever has the lease may tell later of an older state, and that counts.
    if (word.leased) for (const state of word.seen) if (!states.has(state)) states.set(state, at);
    // What is too old, or told under a lease that another relay has, decides nothing.
    if (this.#epoch > word.epoch || at - word.observedAt > DELTA_MAX_AGE_MS) return;
    for (const state of word.seen) if (!decided.has(state)) decided.set(state, { at, epoch: word.epoch });
  }

  /** Whether the service had been told by `at` of any of these states, by a relay that saw it and had the lease. */
  toldOfAny(node: NodeName, states: readonly number[], at: EpochMs): boolean {
    const told = this.#toldOf(node).states;
    return states.some((state) => {
      const toldAt = told.get(state);
      return toldAt !== undefined && toldAt <= at;
    });
  }

  /** Whether the service had been told of a state by `at`, by a relay that held the lease. */
  decidedBy(node: NodeName, state: number, at: EpochMs): boolean {
    const told = this.#toldOf(node).decided.get(state);
    return told !== undefined && told.at <= at;
  }

  /** The states that the service may have been told of by `at` as a node's newest. */
  perhapsTold(node: NodeName, at: EpochMs): readonly number[] {
    return [...this.#toldOf(node).newest].filter(([, toldAt]) => toldAt <= at).map(([state]) => state);
  }

  #toldOf(node: NodeName): Told {
    const told: Told = this.#told.get(node) ?? {
      states: new Map(),
      decided: new Map(),
      newest: new Map(),
    };
    this.#told.set(node, told);
    return told;
  }
}

/** When each relay, by its epoch, first saw something. */
class Sights<Thing> {
  readonly #at = new Map<Thing, Map<number, EpochMs>>();

  note(epoch: number, thing: Thing, at: EpochMs): void {
    const by = this.#at.get(thing) ?? new Map<number, EpochMs>();
    this.#at.set(thing, by);
    if (!by.has(epoch)) by.set(epoch, at);
  }

  /** By one relay, or by any; never: at the end of time. */
  at(thing: Thing, epoch?: number): EpochMs {
    const by = this.#at.get(thing);
    if (epoch !== undefined) return by?.get(epoch) ?? Infinity;
    return Math.min(...(by?.values() ?? []));
  }
}
