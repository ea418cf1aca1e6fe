import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Delta, deltaId, onlyPod } from '#shared/eviction/facts.ts';
import { type DeltaMessage, deduplicationId, messageGroupId } from '#shared/queues/delta-message.ts';
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES } from '#shared/queues/limits.ts';
import { messageBytes } from '#shared/queues/message-fault.ts';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/queues/sender.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import type { DirtySet } from './dirty-set.ts';
import type { DeltaQueue } from './outbox.ts';
import type { RelayMetrics } from './relay-metrics.ts';

/** Calls of a queue at a time: at 15 ms a call some 10,000 deltas a second, more than a core makes. */
const CALLS = 16;
/** Of these, those that carry words of any one cluster: however much it has to say, others need not wait for an answer. */
const CALLS_OF_CLUSTER = 12;
/** After so much work in one go the event loop is free for what comes in. */
const WORK_MS = 5;
const BACKOFF: Backoff = { firstMs: 100, longestMs: 10_000 };

/** One cluster's part of what is to be told. */
export interface Spoken {
  readonly dirty: DirtySet;
  /** Whether it may be spoken for now. */
  readonly maySpeak: () => boolean;
  /** A queue took what was told of it; with an error, it did not. */
  readonly told: (queue: DeltaQueue, error?: unknown) => void;
}

/** A delta that is made to be sent now. */
interface Word {
  readonly of: Spoken;
  readonly delta: Delta;
  readonly message: OutgoingMessage & { readonly groupId: string };
}

export interface LaneDeps {
  readonly name: DeltaQueue;
  readonly queue: QueueSender;
  readonly kind: 'node' | 'pod';
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RelayMetrics;
  readonly signal: AbortSignal;
  /** How many words wait, of all clusters. */
  readonly waiting: () => number;
  /** Called after each call, with the clusters it spoke of: the delta of a node may leave pods to be told of. */
  readonly answered: (clusters: Iterable<Spoken>) => void;
}

/**
 * The way to one queue. Clusters take turns word by word, so that one with little to say is in the very next call. Many
 * calls go at a time, never two with words of one node: the dirty set holds back what follows.
 */
export class Lane {
  readonly #deps: LaneDeps;
  /** Clusters that may have something to say, in the order of their turns. */
  readonly #turns = new Set<Spoken>();
  readonly #callsOf = new WeakMap<Spoken, number>();
  #calls = 0;
  /** How often in a row the queue could not be reached. */
  #failures = 0;
  /** How often in a row the queue refused words of a group. */
  readonly #refusals = new WeakMap<Spoken, Map<string, number>>();
  #filling = false;
  /** What is to end before nothing is left to send: the filling of calls, calls, pauses. */
  readonly #work = new Set<Promise<void>>();

  constructor(deps: LaneDeps) {
    this.#deps = deps;
  }

  /** Sends what is ready of these clusters. */
  send(clusters: Iterable<Spoken>): void {
    for (const cluster of clusters) this.#turns.add(cluster);
    if (this.#filling) return;
    this.#filling = true;
    this.#begin(this.#fill());
  }

  get busy(): boolean {
    return this.#work.size > 0;
  }

  /** Resolves when what is under way now has ended. */
  async drained(): Promise<void> {
    await Promise.all(this.#work);
  }

  #begin(work: Promise<void>): Promise<void> {
    const ended = work.finally(() => this.#work.delete(ended));
    this.#work.add(ended);
    return ended;
  }

  /** Begins calls for as long as there are words and room. */
  async #fill(): Promise<void> {
    const { clock, signal } = this.#deps;
    // Let the caller finish: what it marks in one go travels together.
    await Promise.resolve();
    let workingSince = clock.now();
    for (;;) {
      if (this.#failures > 0) await pause(backoffMs(this.#failures, BACKOFF), signal);
      const words = this.#calls < CALLS ? this.#take() : [];
      if (words.length === 0) break;
      const call = this.#begin(this.#call(words));
      // A queue that was out of reach is asked by one call, until it answers.
      if (this.#failures > 0) await call;
      else if (clock.now() - workingSince >= WORK_MS) {
        await nextTurn();
        workingSince = clock.now();
      }
    }
    if (this.#calls === 0) this.#failures = 0;
    this.#gauge();
    // In the turn in which nothing was left: what is marked from now on starts anew.
    this.#filling = false;
  }

  /** What goes into one call, and is on its way from now on. */
  #take(): readonly Word[] {
    const taken: Word[] = [];
    let bytes = 0;
    const made = new Map<Spoken, Iterator<DeltaMessage>>();
    while (taken.length < MAX_BATCH_MESSAGES) {
      const [next] = this.#turns;
      if (!next) break;
      const word = this.#wordOf(next, made);
      if (!word) {
        this.#turns.delete(next);
        continue;
      }
      bytes += messageBytes(word.message);
      // It is then the first word of the next call.
      if (taken.length > 0 && bytes > MAX_BATCH_BYTES) break;
      next.dirty.sending(word.delta);
      taken.push(word);
      // Behind the others.
      this.#turns.delete(next);
      this.#turns.add(next);
    }
    return taken;
  }

  /** The next word of a cluster for a call; `made`: whence those come that are made for it. */
  #wordOf(of: Spoken, made: Map<Spoken, Iterator<DeltaMessage>>): Word | undefined {
    let words = made.get(of);
    if (!words) {
      // Its turn comes again when one of its calls is answered, or it may speak.
      if (!of.maySpeak() || this.#callsWith(of) >= CALLS_OF_CLUSTER) return undefined;
      const now = this.#deps.clock.now();
      words = this.#deps.kind === 'node' ? of.dirty.nodeMessages(now) : of.dirty.podMessages(now);
      made.set(of, words);
    }
    const next = words.next();
    if (next.done) return undefined;
    const { delta, body } = next.value;
    const groupId = messageGroupId(delta.ref);
    return { of, delta, message: { body, groupId, deduplicationId: deduplicationId(delta) } };
  }

  async #call(words: readonly Word[]): Promise<void> {
    const { queue, answered } = this.#deps;
    const clusters = new Set(words.map(({ of }) => of));
    const failuresBefore = this.#failures;
    this.#calls += 1;
    for (const of of clusters) this.#callsOf.set(of, this.#callsWith(of) + 1);
    const failures = await queue
      .send(words.map(({ message }) => message))
      .catch((reason: unknown) => this.#unreachable(words, reason));
    if (failures) this.#settle(words, failures);
    // Calls that were under way together fail together.
    this.#failures = failures ? 0 : Math.max(this.#failures, failuresBefore + 1);
    this.#calls -= 1;
    for (const of of clusters) this.#callsOf.set(of, this.#callsWith(of) - 1);
    this.#gauge();
    answered(clusters);
  }

  /** How many calls that are under way carry words of a cluster. */
  #callsWith(of: Spoken): number {
    return this.#callsOf.get(of) ?? 0;
  }

  #unreachable(words: readonly Word[], reason: unknown): undefined {
    const { name, log, metrics } = this.#deps;
    metrics.unsent(name, words.length);
    log.warn('relay.queue-unreachable', { queue: name, waiting: words.length, reason });
    for (const { of, delta } of words) {
      of.dirty.failed(delta);
      of.dirty.answered(delta);
      of.told(name, reason);
    }
  }

  #settle(words: readonly Word[], failures: readonly SendFailure[]): void {
    const { name, log, metrics } = this.#deps;
    metrics.sent.inc({ queue: name }, words.length - failures.length);
    const failureOf = new Map(failures.map((failure) => [failure.index, failure]));
    const refused = new Map<string, Word[]>();
    const failedOf = new Map(failures.map(({ index, reason }) => [words[index]?.of, reason]));
    for (const of of new Set(words.map((word) => word.of))) of.told(name, failedOf.get(of));
    for (const [index, word] of words.entries()) {
      const { of, delta, message } = word;
      const failure = failureOf.get(index);
      if (failure && !failure.permanent) {
        of.dirty.failed(delta);
        refused.set(message.groupId, [...(refused.get(message.groupId) ?? []), word]);
        continue;
      }
      const told = { ...delta.ref, queue: name, delta: deltaId(delta.version) };
      if (failure) {
        metrics.refused(name);
        log.error('relay.delta-refused', { ...told, reason: failure.reason });
      } else {
        const uid = onlyPod(delta);
        log.info('relay.delta-sent', uid === undefined ? told : { ...told, uid });
        of.dirty.taken(delta);
      }
      of.dirty.answered(delta);
      this.#refusals.get(of)?.delete(message.groupId);
    }
    for (const group of refused.values()) this.#begin(this.#holdBack(group));
  }

  /** Words of a group that the queue refused for now: no other of the group goes before a pause is over. */
  async #holdBack(words: readonly Word[]): Promise<void> {
    const [first] = words;
    if (!first) return;
    this.#deps.metrics.unsent(this.#deps.name, words.length);
    const { of, message } = first;
    const refusals = this.#refusals.get(of) ?? new Map<string, number>();
    this.#refusals.set(of, refusals);
    const count = (refusals.get(message.groupId) ?? 0) + 1;
    refusals.set(message.groupId, count);
    await pause(backoffMs(count, BACKOFF), this.#deps.signal);
    for (const { delta } of words) of.dirty.answered(delta);
    this.send([of]);
  }

  #gauge(): void {
    const { name, metrics, waiting } = this.#deps;
    metrics.pending.set({ queue: name }, waiting());
  }
}
