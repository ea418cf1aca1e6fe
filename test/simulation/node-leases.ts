import type { NodeName } from '#shared/eviction/identity.ts';
import type { NodeLease } from '#shared/eviction/node-life.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

const RENEWED_EVERY_MS = 10_000;
const DURATION_MS = 40_000;
/** The time of a node's death, relative to being called unreachable: before, so that the call is right, or after. */
const DIES_MS = { from: -60_000, within: 240_000 };

/** A period in which a kubelet runs. */
interface Life {
  readonly from: EpochMs;
  to: EpochMs;
}

/**
 * The Leases of a cluster's nodes, whose node controller has a stale view. It calls nodes unreachable that renew their Leases,
 * and some of these nodes die later. Nodes that are not called unreachable are alive.
 */
export class NodeLeases {
  readonly #lives = new Map<NodeName, Life[]>();

  /**
   * Notes that a node is called unreachable from now on, or no longer. Draws no random numbers, so that histories without Leases
   * stay the same.
   */
  called(name: NodeName, unreachable: boolean, at: EpochMs): void {
    const lives = this.#lives.get(name) ?? [{ from: at - DURATION_MS, to: Number.POSITIVE_INFINITY }];
    this.#lives.set(name, lives);
    const last = lives.at(-1);
    if (!last) return;
    const isCalledSo = Number.isFinite(last.to);
    if (unreachable && !isCalledSo) {
      const chance = (Math.floor(at / 10) * 7919 + Number(name.slice(1)) * 104_729) % DIES_MS.within;
      last.to = Math.max(last.from, at + DIES_MS.from + chance);
    } else if (!unreachable && isCalledSo) {
      lives.push({ from: Math.max(at, last.to), to: Number.POSITIVE_INFINITY });
    }
  }

  leaseAt(name: NodeName, at: EpochMs): NodeLease | undefined {
    const renewedAt = this.#renewedAt(name, at);
    return renewedAt === undefined ? undefined : { renewedAt, durationMs: DURATION_MS, asOf: at };
  }

  /** Reports whether the Lease was fresh whenever a process may have read it. */
  isFreshThroughout(name: NodeName, from: EpochMs, to: EpochMs): boolean {
    for (let at = from; at <= to; at += 100) {
      if (at - (this.#renewedAt(name, at) ?? -Infinity) >= DURATION_MS) return false;
    }
    return true;
  }

  /** Returns the time by which the Lease has expired, in the current state; never: at the end of time. */
  expiresAt(name: NodeName): EpochMs {
    const { to = -Infinity } = this.#lives.get(name)?.at(-1) ?? {};
    return to + DURATION_MS;
  }

  #renewedAt(name: NodeName, at: EpochMs): EpochMs | undefined {
    const life = this.#lives.get(name)?.findLast(({ from }) => from <= at);
    if (!life) return undefined;
    const last = Math.min(at, life.to);
    return Math.max(life.from, last - (last % RENEWED_EVERY_MS));
  }
}
