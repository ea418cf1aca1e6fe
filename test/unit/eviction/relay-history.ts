import fc from 'fast-check';
import type { Delta, PodFacts, SeenTaint } from '#shared/eviction/facts.ts';
import { podUid } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { at, pod, ref, taint, tolerating } from './builders.ts';

/** An event on a node. */
type Happening =
  | { readonly kind: 'taint' | 'untaint'; readonly key: string; readonly value: string }
  | { readonly kind: 'appears' | 'changes'; readonly uid: number; readonly seconds: readonly Seconds[] }
  | { readonly kind: 'goes'; readonly uid: number }
  | { readonly kind: 'resync' | 'node-goes' };

/**
 * The tolerationSeconds of a pod; `for ever`: it tolerates the taint indefinitely; `not`: it does not tolerate
 * the taint.
 */
type Seconds = number | 'for ever' | 'not';

const KEYS = ['a', 'b'];
const uid = fc.nat({ max: 3 });
const value = fc.constantFrom('', 'v');
const seconds = fc.tuple(...KEYS.map(() => fc.constantFrom<Seconds>(0, 3, 10, 40, 'for ever', 'not')));

const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({ kind: fc.constantFrom('taint', 'untaint'), key: fc.constantFrom(...KEYS), value }),
  fc.record({ kind: fc.constantFrom('appears', 'changes'), uid, seconds }),
  fc.record({ kind: fc.constant('goes'), uid }),
  fc.record({ kind: fc.constantFrom('resync', 'node-goes') }),
);

/** Seconds since the previous event: mostly a few, sometimes half an hour. */
const later = fc.oneof({ weight: 20, arbitrary: fc.integer({ min: 1, max: 8 }) }, fc.constant(1800));

export interface RelayHistory {
  /** The deltas in the order of the relay. */
  readonly deltas: readonly Delta[];
  /** The last delta, of the whole node. */
  readonly resync: Delta;
}

/**
 * The deltas that a relay sends for one node, whose taints and pods appear, change and disappear, as the node
 * itself does. Pods never return with an old UID. `atLeast`: the minimum number of events.
 */
const histories = (atLeast: number): fc.Arbitrary<RelayHistory> =>
  fc.array(fc.tuple(later, happening), { minLength: atLeast, maxLength: 25 }).map((happenings) => {
    const relay = new OneNodeRelay();
    for (const [later, what] of happenings) relay.report(later, what);
    return relay.end();
  });

export const relayHistory = histories(0);
export const longRelayHistory = histories(20);

class OneNodeRelay {
  readonly #deltas: Delta[] = [];
  readonly #taints = new Map<string, SeenTaint>();
  readonly #pods = new Map<number, PodFacts>();
  readonly #generations = new Map<number, number>();
  #deletedAt: EpochMs | undefined;
  #second = 0;
  #sequence = 0;

  report(later: number, what: Happening): void {
    this.#second += later;
    switch (what.kind) {
      case 'taint':
      case 'untaint':
        this.#reportTaint(what);
        return;
      case 'appears':
        if (!this.#pods.has(what.uid)) this.#reportPod(what.uid, what.seconds);
        return;
      case 'changes':
        if (this.#pods.has(what.uid)) this.#reportPod(what.uid, what.seconds);
        return;
      case 'goes':
        this.#reportGone(what.uid);
        return;
      case 'resync':
        if (this.#concerned) this.#sendNode();
        return;
      case 'node-goes':
        if (this.#taints.size === 0 || this.#deletedAt !== undefined) return;
        this.#deletedAt = at(this.#second);
        this.#sendNode();
        return;
      default:
        what satisfies never;
    }
  }

  end(): RelayHistory {
    this.#second += 1;
    const deltas = [...this.#deltas];
    return { deltas, resync: this.#sendNode() };
  }

  get #concerned(): boolean {
    return this.#taints.size > 0;
  }

  #reportTaint({ kind, key, value: given }: Extract<Happening, { key: string }>): void {
    const before = this.#taints.get(key);
    const same = kind === 'untaint' ? !before : before?.value === given;
    if (same && this.#deletedAt === undefined) return;
    if (kind === 'untaint') this.#taints.delete(key);
    else
      this.#taints.set(key, { ...taint(key, this.#second, given), ...(before && { seenAt: before.seenAt }) });
    // A node that changes exists, perhaps again.
    this.#deletedAt = undefined;
    this.#sendNode();
  }

  #reportPod(index: number, tolerated: readonly Seconds[]): void {
    const tolerations = tolerated.flatMap((seconds, key) => {
      if (seconds === 'not') return [];
      return [tolerating(KEYS[key] ?? '', seconds === 'for ever' ? undefined : seconds)];
    });
    const podSince = this.#pods.get(index)?.podSince ?? at(this.#second);
    const facts = pod(`u${index}.${this.#generations.get(index) ?? 0}`, { tolerations, podSince });
    this.#pods.set(index, facts);
    if (this.#concerned) this.#send({ kind: 'pod', pod: facts });
  }

  #reportGone(index: number): void {
    const gone = this.#pods.get(index);
    if (!gone) return;
    this.#pods.delete(index);
    this.#generations.set(index, (this.#generations.get(index) ?? 0) + 1);
    if (this.#concerned) this.#send({ kind: 'pod-gone', uid: podUid(gone.uid) });
  }

  #sendNode(): Delta {
    return this.#send({ kind: 'node', pods: [...this.#pods.values()], wake: false });
  }

  #send(what: Content): Delta {
    this.#sequence += 1;
    const delta: Delta = {
      ...what,
      ref,
      version: { epoch: 1, sequence: this.#sequence },
      observedAt: at(this.#second),
      taints: [...this.#taints.values()],
      ...(this.#deletedAt === undefined ? {} : { deletedAt: this.#deletedAt }),
    };
    this.#deltas.push(delta);
    return delta;
  }
}

type Content =
  | { readonly kind: 'node'; readonly pods: readonly PodFacts[]; readonly wake: boolean }
  | { readonly kind: 'pod'; readonly pod: PodFacts }
  | { readonly kind: 'pod-gone'; readonly uid: PodFacts['uid'] };
