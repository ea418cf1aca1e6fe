import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { OutgoingMessage } from '#shared/state/sender.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Accuse, Bench } from './judge.ts';
import type { Knowledge } from './knowledge.ts';
import type { RecordJudge } from './record-judge.ts';
import type { ReceivedMessage } from './simulated-queue.ts';
import { IDLE_NODE } from './simulated-user.ts';

const HOUR_MS = 3_600_000;
/** The reach of timers by delayed message: a timer that is armed again within that time exists twice. */
const MAX_DELAY_MS = 900_000;
/** The tries of a failing node in its first hour; later it has fewer. A delta may arm several timers. */
const TRIES_AN_HOUR = 75;
const TRIES_A_DELTA = 5;
/** The time for which a pod that has just become due may wait for a relay's imminent report, plus the time of a look. */
const KEPT_MS = 3 * 60_000;
/** The time after which ended evictions are forgotten: the remaining reports, and one resync. */
const SETTLED_MS = 30 * 60_000;

/** The time within which a message is handled while nothing fails. */
const UNDER_WAY_MS = 10_000;

/** A message about a node that was sent to or received from `evictions-due`. */
interface Due {
  readonly kind: string;
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly at: EpochMs;
}

/** A due message, and when it was sent. */
interface SentDue extends Due {
  readonly sentAt: EpochMs;
}

/** P6 and P7, as far as messages show them. */
export class MessageJudge {
  readonly #bench: Bench;
  readonly #records: RecordJudge;
  readonly #accuse: Accuse;
  /** The times when work for each node was requested again: by a delta, or by a redelivered message. */
  readonly #causes = new Map<string, EpochMs[]>();
  readonly #tries = new Map<string, EpochMs[]>();
  readonly #idle = new Map<
    ClusterName,
    { readonly at: EpochMs; readonly sent: number; readonly writes: number }
  >();
  readonly #accused = new Set<string>();
  readonly #read = new Map<string, Due>();
  #sent = 0;

  constructor(bench: Bench, records: RecordJudge, accuse: Accuse) {
    this.#bench = bench;
    this.#records = records;
    this.#accuse = accuse;
    bench.queues.evictionsDue.onAccepted = ({ body }) => this.#accepted(body);
    bench.queues.evictionsDue.onForgotten = ({ body }) => this.#once(`P6: the queue forgot ${body}`);
    bench.queues.evictionsDue.onReceived = (message) => this.#received(message);
    for (const queue of [bench.queues.nodeDeltas, bench.queues.podDeltas]) {
      queue.onReceived = (message) => {
        this.#knowledgeOf(message)?.handed(message, bench.clock.now());
        void this.#readLease(message);
        this.#isCaused(this.#about(message.body));
      };
      queue.onHandled = (message) => this.#knowledgeOf(message)?.taken(message, bench.clock.now());
    }
  }

  /** A relay sends a delta. */
  sent({ body }: OutgoingMessage): void {
    this.#sent += 1;
    const { cluster, node } = this.#about(body);
    if (node === IDLE_NODE) this.#once(`P7: a relay told of ${node} of ${cluster}`);
  }

  /** P7: no process reads the pods of a node that has nothing to report. */
  podsRead(cluster: ClusterName, node: NodeName | undefined): void {
    this.#bench.tried('P7');
    if (node === IDLE_NODE || node === undefined) {
      this.#once(`P7: the pods of ${node ?? 'all nodes'} of ${cluster} were listed`);
    }
  }

  /** Work for a node is requested again. */
  #isCaused({ cluster, node }: Due): void {
    timesOf(this.#causes, `${cluster} ${node}`).push(this.#bench.clock.now());
  }

  /** A relay may acquire a lease without receiving the answer. */
  async #readLease(message: OutgoingMessage): Promise<void> {
    const lease = await this.#bench.storage.open.leases.read(this.#about(message.body).cluster);
    if (lease) this.#knowledgeOf(message)?.leaseTaken(lease.epoch);
  }

  #knowledgeOf({ body }: OutgoingMessage): Knowledge | undefined {
    const { cluster } = this.#about(body);
    return this.#bench.clusters.find(({ name }) => name === cluster)?.truth.knowledge;
  }

  /**
   * One message is under way for each time. Each report of the node arms these timers once more, and so may the pass that
   * it causes.
   */
  #accepted(body: string): void {
    const { kind, cluster, node } = this.#about(body);
    if (kind !== 'due') return;
    this.#bench.tried('P6');
    const mine = this.#underWay().filter((each) => each.cluster === cluster && each.node === node);
    const moments = new Set(mine.map(({ at }) => at)).size;
    const since = this.#bench.clock.now() - MAX_DELAY_MS;
    const causes = within(timesOf(this.#causes, `${cluster} ${node}`), since).length;
    if (mine.length > 2 * moments * (causes + 1)) {
      const figures = `${mine.length} of ${moments} moments asked for ${causes} times`;
      this.#once(`P6: messages multiply for ${node} of ${cluster}`, figures);
    }
  }

  /** Returns the due messages that were not handled before. */
  #underWay(): readonly SentDue[] {
    return this.#bench.queues.evictionsDue.messages
      .filter(({ again }) => !again)
      .map(({ body, sentAt }) => ({ ...this.#about(body), sentAt }))
      .filter(({ kind }) => kind === 'due');
  }

  /** `evict` receives a message. */
  #received({ body, again, receives }: ReceivedMessage): void {
    const about = this.#about(body);
    const { kind, cluster, node, at } = about;
    if (again || receives > 1) this.#isCaused(about);
    if (kind !== 'due' || receives > 1) return;
    // Held or rate-limited pods are evicted one after the other, and a blocking budget is tried again as long as it blocks.
    if (this.#records.isTurn({ cluster, node }, at)) return;
    const key = `${cluster} ${node}`;
    const now = this.#bench.clock.now();
    const tries = within(timesOf(this.#tries, key), now - HOUR_MS);
    this.#tries.set(key, [...tries, now]);
    // A delta arms messages that are received up to the longest delay later.
    const causes = within(timesOf(this.#causes, key), now - HOUR_MS - MAX_DELAY_MS).length;
    if (tries.length > TRIES_AN_HOUR + TRIES_A_DELTA * causes) {
      this.#once(`P6: ${node} of ${cluster} is looked at all the time`, `${tries.length} times in an hour`);
    }
  }

  audit(): void {
    this.#auditKept();
    this.#auditIdle();
  }

  /** A look completes its message regardless of the result: another message retries failed evictions. */
  #auditKept(): void {
    const { clock, disturbances } = this.#bench;
    for (const { cluster, node, at, sentAt } of this.#underWay()) {
      // A change of the rules sends the message of a past deadline again.
      const since = Math.max(at, sentAt);
      const until = disturbances.excusedUntil(cluster, since + KEPT_MS, ['request', 'death', 'slow']);
      if (until < clock.now())
        this.#once(`P6: a message of ${node} of ${cluster} is kept`, `${clock.now() - since} ms`);
    }
  }

  /** P7: no process sends or writes while no node is tainted. */
  #auditIdle(): void {
    const { clock, clusters, disturbances } = this.#bench;
    const { writes } = this.#records;
    const settledAt = clock.now() - SETTLED_MS;
    const nodes = clusters.flatMap(({ name, truth }) =>
      [...truth.states().keys()].map((node) => ({
        name,
        taints: truth.taintsOf(node),
        changedAt: truth.changedAt(node),
      })),
    );
    const idle = nodes.every(
      ({ name, taints, changedAt }) =>
        taints?.length === 0 && disturbances.excusedUntil(name, changedAt) < settledAt,
    );
    // A new relay does not know that a pod was bound to its node after that was deleted.
    const lost = clusters.some(({ livePods, truth }) =>
      [...livePods.values()].some(({ uid }) => truth.isLost(uid)),
    );
    for (const { name } of clusters) {
      const before = this.#idle.get(name);
      if (idle && !lost) this.#idle.set(name, { at: clock.now(), sent: this.#sent, writes });
      else this.#idle.delete(name);
      // A whole busy period may lie between two audits in idle times.
      if (!idle || lost || !before || nodes.some(({ changedAt }) => changedAt > before.at)) continue;
      this.#bench.tried('P7');
      if (this.#sent > before.sent)
        this.#once(`P7: ${this.#sent - before.sent} deltas were sent in idle times`);
      if (writes > before.writes) this.#once(`P7: ${writes - before.writes} commits were made in idle times`);
    }
  }

  judgeEnd(): void {
    const { nodeDeltas, podDeltas, evictionsDue } = this.#bench.queues;
    // A resync may coincide with the end.
    const before = this.#bench.clock.now() - UNDER_WAY_MS;
    for (const [name, queue] of Object.entries({ nodeDeltas, podDeltas })) {
      const left = queue.messages.filter(({ again, sentAt }) => !again && sentAt < before).length;
      if (left > 0) this.#once(`P6: ${name} still holds ${left} messages`);
    }
    for (const { body } of evictionsDue.deadLetters) {
      const { kind } = this.#about(body);
      if (kind === 'due') this.#once(`P6: a due message was dead-lettered: ${body}`);
    }
  }

  /** Returns the subject of a message. The result is cached because each message is examined repeatedly. */
  #about(body: string): Due {
    const about: Due = this.#read.get(body) ?? JSON.parse(body);
    this.#read.set(body, about);
    return about;
  }

  #once(what: string, figures = ''): void {
    if (this.#accused.has(what)) return;
    this.#accused.add(what);
    this.#accuse(`${what} ${figures}`.trim());
  }
}

function timesOf(all: Map<string, EpochMs[]>, key: string): EpochMs[] {
  const times = all.get(key) ?? [];
  all.set(key, times);
  return times;
}

const within = (times: readonly EpochMs[], since: EpochMs): EpochMs[] => times.filter((at) => at >= since);
