import type { NodeName } from '#shared/eviction/identity.ts';
import type { NodeLease } from '#shared/eviction/node-life.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

const RENEWED_EVERY_MS = 10_000;
const DURATION_MS = 40_000;
/** Between these a node dies from when it is called unreachable: before, so that it rightly is, or after. */
const DIES_MS = { from: -60_000, within: 240_000 };

/** A kubelet runs. */
interface Life {
  readonly from: EpochMs;
  to: EpochMs;
}

/**
 * The Leases of a cluster's nodes, whose node controller has a stale view: it calls nodes unreachable that renew their Leases, some of
 * which die later. A node of which it is not said is alive.
 */
export class NodeLeases {
  readonly #lives = new Map<NodeName, Life[]>();

  /** A node is called unreachable from now on, or no longer. Draws nothing: a history without Leases is what it was. */
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

  /** Whether the Lease was fresh whenever somebody might have looked. */
  isFreshThroughout(name: NodeName, from: EpochMs, to: EpochMs): boolean {
    for (let at = from; at <= to; at += 100) {
      if (at - (this.#renewedAt(name, at) ?? -Infinity) >= DURATION_MS) return false;
    }
    return true;
  }

  /** By when the Lease has expired, as things are now; never: at the end of time. */
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
