import { defined } from '#shared/defined.ts';
import type { Evict } from '#shared/eviction/evaluate.ts';
import type { Owner } from '#shared/eviction/facts.ts';
import type { PodUid } from '#shared/eviction/identity.ts';
import type { PodOutcome } from '#shared/eviction/outcome.ts';
import { PERMIT_LASTS_MS, permitted, workloadOf } from '#shared/eviction/permits.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { type Pace, RATE_PERMIT_LASTS_MS, type Turn } from '#shared/eviction/rate.ts';
import { drainsOnRelease, type EvictionRecord } from '#shared/eviction/records.ts';
import type { KubernetesApi, LivePod } from '#shared/kubernetes/api.ts';
import { ApiError, LateCallError } from '#shared/kubernetes/http/api-error.ts';
import type { WorkloadRef } from '#shared/kubernetes/replicas.ts';
import type { WorkloadLimit } from '#shared/state/permits.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { evictionOf, type FirstView, type NodeView } from './node-reader.ts';
import type { PassScope } from './ports.ts';

/** If replicas may not be counted, pods ask again after this time. */
const FORBIDDEN_RETRY_MS = 60_000;

interface RatePermit {
  readonly until: EpochMs;
  /** The rules whose policy sets the rates. A permit isn't valid under another revision of the policy. */
  readonly rules: Rules;
}

interface LimitedPod {
  readonly record: EvictionRecord;
  readonly pod: LivePod;
  readonly workload: Owner;
}

/** Decides which evictions of one pass may be sent now: by the limits of workloads, and by the cluster's rates. */
export class PassPermits {
  readonly #scope: PassScope;
  readonly #withheld = new Map<PodUid, PodOutcome>();
  readonly #byWorkload = new Map<PodUid, EpochMs>();
  readonly #byRate = new Map<PodUid, RatePermit>();

  constructor(scope: PassScope) {
    this.#scope = scope;
  }

  /** Returns the outcome of a due pod that may not be evicted in this pass. */
  withheld(uid: PodUid): PodOutcome | undefined {
    return this.#withheld.get(uid);
  }

  /**
   * Takes permits for the due pods that limits concern, with one call for each workload, then for the others at the
   * rates. Rejects with `StoreError`, and with `ApiError` if replicas can't be read.
   */
  async take(due: readonly EvictionRecord[], { view: { rules, verdict }, pods }: FirstView): Promise<void> {
    const evicted = due.flatMap((record) => {
      const pod = pods.get(record.uid);
      const workload = pod && limitingWorkload(rules, pod);
      if (!workload && !isPaced(rules, record)) return [];
      const found = evictionOf(verdict(record, pod));
      return found && !found.unlimited ? [{ record, pod, workload, isUnread: found.lease === 'unread' }] : [];
    });
    const limited = evicted.flatMap(({ record, pod, workload }) =>
      pod && workload ? [{ record, pod, workload }] : [],
    );
    const workloads = Map.groupBy(limited, ({ pod, workload: { kind, name } }) =>
      [pod.namespace, kind, name].join('/'),
    );
    await Promise.all(Array.from(workloads, ([key, asking]) => this.#askLimit(key, asking, rules)));
    // Pods that the Eviction API rejected must not take permits from pods that it may evict.
    const rank = ({ blocked }: EvictionRecord) => (blocked === undefined ? 0 : 1);
    const paced = evicted
      .filter(({ record, isUnread }) => !isUnread && isPaced(rules, record) && !this.withheld(record.uid))
      .map(({ record }) => record);
    await this.#askRates(
      paced.toSorted((a, b) => rank(a) - rank(b)),
      rules,
    );
  }

  /**
   * Resolves with the time until which a pod's permits allow its deletion, or with its outcome if they don't. Replaces
   * a rate permit that expired or that another policy gave: else no permit would last if each answer takes seconds.
   */
  async until(
    { rules }: NodeView,
    record: EvictionRecord,
    pod: LivePod,
    { unlimited }: Evict,
  ): Promise<EpochMs | PodOutcome> {
    if (unlimited) return Infinity;
    const { clock } = this.#scope;
    const { uid } = record;
    const limitedTo = limitingWorkload(rules, pod) ? (this.#byWorkload.get(uid) ?? -Infinity) : Infinity;
    // The permit expired while the server was slow, or the limit is new: the next pass requests a permit.
    if (limitedTo < clock.now()) return { kind: 'behind' };
    if (!isPaced(rules, record)) return limitedTo;
    const permit = this.#byRate.get(uid);
    if (!permit || permit.rules.policyRevision !== rules.policyRevision || permit.until < clock.now()) {
      await this.#askRates([record], rules);
      const outcome = this.withheld(uid);
      if (outcome) return outcome;
    }
    return Math.min(limitedTo, this.#byRate.get(uid)?.until ?? -Infinity);
  }

  /** A rate permit counts from the time at which the delete may have been sent, and serves no other one. */
  async spend(
    record: EvictionRecord,
    { unlimited }: Evict,
    notAfter: EpochMs,
    send: () => Promise<PodOutcome>,
  ): Promise<PodOutcome> {
    const permit = unlimited ? undefined : this.#byRate.get(record.uid);
    if (!permit) return send();
    const { permits, clock, partition } = this.#scope;
    const sent = { uid: record.uid, drains: drainsOnRelease(record) };
    const count = (sentBy?: EpochMs) =>
      permits.sent?.(partition.ref.cluster, sent, permit.rules.policy, clock.now(), sentBy);
    count(notAfter);
    this.#byRate.delete(record.uid);
    try {
      return await send();
    } catch (error) {
      if (error instanceof LateCallError) this.#byRate.set(record.uid, permit);
      throw error;
    } finally {
      if (clock.now() < notAfter) count();
    }
  }

  async #askRates(records: readonly EvictionRecord[], rules: Rules): Promise<void> {
    if (records.length === 0) return;
    const now = this.#scope.clock.now();
    const turns = await this.#ask(records, rules.policy, now);
    for (const [index, { uid }] of records.entries()) {
      const turn = turns[index];
      if (turn) this.#withheld.set(uid, { kind: 'waiting', turn });
      else this.#byRate.set(uid, { until: now + RATE_PERMIT_LASTS_MS, rules });
    }
  }

  async #askLimit(
    key: string,
    asking: readonly LimitedPod[],
    { policy, policyRevision: revision, guardRevision }: Rules,
  ): Promise<void> {
    const { maxEvictionsPerWorkload: limit } = policy;
    const [first] = asking;
    if (!limit || !first) return;
    const { api, clock } = this.#scope;
    const { kind, name } = first.workload;
    const count = await countOf(limit.count, api, { namespace: first.pod.namespace, kind, name });
    const now = clock.now();
    const { windowMs } = limit;
    const records = asking.map(({ record }) => record);
    const turns =
      count === undefined
        ? records.map(() => ({ notBefore: now + FORBIDDEN_RETRY_MS }))
        : await this.#ask(records, { workload: key, count, windowMs }, now);
    const limited = { workload: `${kind}/${name}`, ...defined({ count }), windowMs };
    for (const [index, { turnAt: _turnAt, ...record }] of records.entries()) {
      const until = turns[index]?.notBefore;
      if (until === undefined) {
        this.#byWorkload.set(record.uid, now + PERMIT_LASTS_MS);
        continue;
      }
      const gate = { kind: 'workload-limit' as const, ...limited, revision, guardRevision, until };
      const since = record.held?.by.kind === gate.kind ? record.held.since : now;
      this.#withheld.set(record.uid, {
        kind: 'hold',
        record: { ...record, held: { by: gate, since, until } },
      });
    }
  }

  #ask(
    records: readonly EvictionRecord[],
    limit: Pace | WorkloadLimit,
    now: EpochMs,
  ): Promise<readonly (Turn | undefined)[]> {
    const { permits, partition } = this.#scope;
    const { node, ref } = partition;
    const pods = records.map((record) => ({
      uid: record.uid,
      drains: drainsOnRelease(record),
      inTurn: isInTurn(record) || (node?.retry ?? node?.outage) !== undefined,
    }));
    return permits.take(ref.cluster, pods, limit, now);
  }
}

const limitingWorkload = ({ policy }: Rules, pod: LivePod): Owner | undefined =>
  policy.maxEvictionsPerWorkload && workloadOf(pod);

/** `undefined`: unknown without the permission to count the workload's replicas. */
async function countOf(
  count: number | string,
  api: KubernetesApi,
  workload: WorkloadRef,
): Promise<number | undefined> {
  if (typeof count === 'number') return count;
  try {
    return permitted(count, await api.getReplicas(workload));
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return undefined;
    throw error;
  }
}

/** Without a rate, a pod that was never held needs none. */
const isPaced = ({ policy }: Rules, record: EvictionRecord): boolean =>
  policy.evictionRate !== undefined || drainsOnRelease(record);

const isInTurn = ({ turnAt, notBefore, drains }: EvictionRecord): boolean =>
  turnAt !== undefined || (drains === true && notBefore !== undefined);
