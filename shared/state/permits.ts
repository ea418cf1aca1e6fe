import * as z from 'zod';
import { type ClusterName, type PodUid, podUid } from '#shared/eviction/identity.ts';
import { grantPermits, PERMIT_LASTS_MS, type PermitLimit } from '#shared/eviction/permits.ts';
import { type AskingPod, givePermits, type Pace, type Turn } from '#shared/eviction/rate.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { parseStored } from './stored.ts';

export interface WorkloadLimit extends PermitLimit {
  /** `namespace/kind/name` */
  readonly workload: string;
}

export interface SentPod extends Pick<AskingPod, 'drains'> {
  readonly uid: PodUid;
}

/** Grants permits to evict, at each cluster's rates and within its workloads' limits, to all processes together. */
export interface Permits {
  /**
   * Takes permits for pods, as many as the limit allows. Resolves, in order, with when a pod asks again, or `undefined`:
   * a permit for `RATE_PERMIT_LASTS_MS`, or of a workload for `PERMIT_LASTS_MS`. A permit counts once taken, whether or
   * not its pod is evicted. Rejects with `StoreError`.
   */
  take(
    cluster: ClusterName,
    pods: readonly AskingPod[],
    limit: Pace | WorkloadLimit,
    now: EpochMs,
  ): Promise<readonly (Turn | undefined)[]>;

  /**
   * Counts the delete of a pod permitted at a rate from `sentBy`, its latest time; without it, from now: it was answered.
   * Absent: a second may see the deletes of two seconds' permits, and of a burst.
   */
  sent?(cluster: ClusterName, pod: SentPod, pace: Pace, now: EpochMs, sentBy?: EpochMs): void;
}

/** For a day, as clocks differ. Then each rate allows its whole burst again. */
const RATES_NEEDED_MS = 24 * 3_600_000;

const permitsSchema = z.array(z.object({ uid: z.string().transform(podUid), at: z.int() }));
const bucket = z.object({ permits: z.number(), at: z.number(), takenTo: z.number() });
const ratesSchema = z.object({ evictionRate: bucket.optional(), releaseRate: bucket.optional() });

export interface PermitItem {
  readonly key: string;
  readonly neededTo: EpochMs;
  /** Derives answers, and `permits` to store, from those stored. Absent: the item stays. Throws `StoreError`. */
  grant(stored: unknown): { readonly turns: readonly (Turn | undefined)[]; readonly permits?: object };
}

/** Returns the item of a cluster in which the permits of a limit are stored. */
export function permitItem(
  pods: readonly AskingPod[],
  limit: Pace | WorkloadLimit,
  now: EpochMs,
): PermitItem {
  if (!('workload' in limit))
    return {
      key: 'RATE',
      neededTo: now + RATES_NEEDED_MS,
      grant(stored = {}) {
        const { turns, given } = givePermits(parseStored(ratesSchema, stored, 'rates'), pods, limit, now);
        return { turns, permits: given };
      },
    };
  const { workload, windowMs } = limit;
  return {
    key: `PERMITS#${workload}`,
    neededTo: now + windowMs + PERMIT_LASTS_MS,
    grant(stored = []) {
      const held = parseStored(permitsSchema, stored, `permits of ${workload}`);
      const uids = pods.map(({ uid }) => uid);
      const { permits, moments } = grantPermits(held, uids, limit, now);
      const turns = moments.map((moment) => (moment === now ? undefined : { notBefore: moment }));
      return turns.includes(undefined) ? { turns, permits } : { turns };
    },
  };
}
