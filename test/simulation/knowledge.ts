import { DELTA_MAX_AGE_MS, type Delta } from '#shared/eviction/facts.ts';
import { type NodeName, nodeName, type PodUid } from '#shared/eviction/identity.ts';
import type { OutgoingMessage } from '#shared/state/sender.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** The states that one relay has seen of each node, by their numbers, in order. */
type Seen = Map<NodeName, number[]>;

/** The content of a delta. */
interface Word {
  readonly node: NodeName;
  readonly seen: readonly number[];
  readonly epoch: number;
  /** True if the relay held the lease when it sent the delta. */
  readonly leased: boolean;
  readonly observedAt: EpochMs;
}

/** The information that the service has received about one node. */
interface SentStates {
  /** The time when each state was first reported by a relay that saw it and held the lease. */
  readonly states: Map<number, EpochMs>;
  /** The time when each of them was first reported reliably by a relay that held the lease, and that relay. */
  readonly decided: Map<number, { readonly at: EpochMs; readonly epoch: number }>;
  /** The earliest time at which each state may have been reported as the node's newest. */
  readonly newest: Map<number, EpochMs>;
}

/**
 * The information that the service can have about one cluster's nodes, by the states that its relays saw and the deltas that its
 * handlers accepted. States are numbers in the truth.
 */
export class Knowledge {
  readonly #relays = new Map<number, Seen>();
  /** The newest epoch of the lease. */
  #epoch = 0;
  /** The deltas, by deduplication ID. */
  readonly #words = new Map<string, Word>();
  readonly #sent = new Map<NodeName, SentStates>();
  /** The sightings by relay, and the first of all. */
  readonly #podsSeen = new Sights<PodUid>();
  readonly #statesSeen = new Sights<number>();

  /** A relay acquires the lease. */
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
   * Reports whether a relay saw a pod before a relay saw a state of its node. If the relay whose report of that state counts saw
   * the node before, it must have seen the pod itself. A relay that has lost the lease does not share its information.
   */
  podSeenBefore(uid: PodUid, node: NodeName, state: number): boolean {
    const epoch = this.#sentOf(node).decided.get(state)?.epoch;
    const watched = epoch !== undefined && this.#relays.get(epoch)?.get(node)?.[0] !== state;
    const relay = watched ? epoch : undefined;
    return this.#podsSeen.at(uid, relay) < this.#statesSeen.at(state, relay);
  }

  /** Returns the time when a relay first saw a state; never: at the end of time. */
  seenAt(state: number): EpochMs {
    return this.#statesSeen.at(state);
  }

  /** A relay sends a delta that it has just created. */
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
      node,
      seen: [...seen],
      epoch,
      observedAt,
      leased: epoch >= this.#epoch,
    });
  }

  /** A handler receives a delta: from now on the delta may count. */
  handed({ deduplicationId = '' }: OutgoingMessage, at: EpochMs): void {
    const word = this.#words.get(deduplicationId);
    const state = word?.seen.at(-1);
    if (!word || state === undefined) return;
    const { newest } = this.#sentOf(word.node);
    if (!newest.has(state)) newest.set(state, at);
  }

  /** A handler has finished a delta: from now on the delta counts. */
  taken({ deduplicationId = '' }: OutgoingMessage, at: EpochMs): void {
    const word = this.#words.get(deduplicationId);
    if (!word) return;
    const { states, decided } = this.#sentOf(word.node);
    // A relay with the lease may report an older state later, and that report counts.
    if (word.leased) for (const state of word.seen) if (!states.has(state)) states.set(state, at);
    // A delta that is too old, or from a relay that has lost the lease, decides nothing.
    if (this.#epoch > word.epoch || at - word.observedAt > DELTA_MAX_AGE_MS) return;
    for (const state of word.seen) if (!decided.has(state)) decided.set(state, { at, epoch: word.epoch });
  }

  /** Reports whether the service had received any of these states by `at`, from a relay that saw it and held the lease. */
  sentAny(node: NodeName, states: readonly number[], at: EpochMs): boolean {
    const sent = this.#sentOf(node).states;
    return states.some((state) => {
      const sentAt = sent.get(state);
      return sentAt !== undefined && sentAt <= at;
    });
  }

  /** Reports whether the service had received a state by `at`, from a relay that held the lease. */
  decidedBy(node: NodeName, state: number, at: EpochMs): boolean {
    const sent = this.#sentOf(node).decided.get(state);
    return sent !== undefined && sent.at <= at;
  }

  /** Returns the states that the service may have received by `at` as a node's newest. */
  perhapsSent(node: NodeName, at: EpochMs): readonly number[] {
    return [...this.#sentOf(node).newest].filter(([, sentAt]) => sentAt <= at).map(([state]) => state);
  }

  #sentOf(node: NodeName): SentStates {
    const sent: SentStates = this.#sent.get(node) ?? {
      states: new Map(),
      decided: new Map(),
      newest: new Map(),
    };
    this.#sent.set(node, sent);
    return sent;
  }
}

/** The time when each relay, by its epoch, first saw something. */
class Sights<Thing> {
  readonly #at = new Map<Thing, Map<number, EpochMs>>();

  note(epoch: number, thing: Thing, at: EpochMs): void {
    const byRelay = this.#at.get(thing) ?? new Map<number, EpochMs>();
    this.#at.set(thing, byRelay);
    if (!byRelay.has(epoch)) byRelay.set(epoch, at);
  }

  /** Returns the time for one relay, or for any; never: at the end of time. */
  at(thing: Thing, epoch?: number): EpochMs {
    const byRelay = this.#at.get(thing);
    if (epoch !== undefined) return byRelay?.get(epoch) ?? Infinity;
    return Math.min(...(byRelay?.values() ?? []));
  }
}
