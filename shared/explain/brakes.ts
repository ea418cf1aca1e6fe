import type { Brake } from '#shared/eviction/brake.ts';
import { tripText } from '#shared/eviction/guard.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { HoldTarget, Rules } from '#shared/eviction/policy.ts';

/** What keeps a pod, and who said so. */
export interface BrakeAccount {
  readonly by: Brake;
  /** With a stop or a hold, where it still stands. */
  readonly act?: { readonly who: string; readonly at: EpochMs; readonly why: string };
  /** With a hold: whom it is about. */
  readonly target?: HoldTarget;
  /** With the guard: what tripped it, for people. */
  readonly trip?: string;
}

/** What the rules of now say of a brake. */
export function accountOfBrake(by: Brake, { stops, holds, trips }: Rules): BrakeAccount {
  switch (by.kind) {
    case 'stopped': {
      const stop = stops.find(({ scope }) => scope === by.scope);
      return { by, ...(stop ? { act: actOf(stop) } : {}) };
    }
    case 'hold': {
      const hold = holds.find(({ id }) => id === by.id);
      return { by, ...(hold ? { act: actOf(hold), target: hold.target } : {}) };
    }
    case 'guard': {
      const trip = trips.find(({ scope, trippedAt }) => scope === by.scope && trippedAt === by.trippedAt);
      return { by, ...(trip ? { trip: tripText(trip) } : {}) };
    }
    default:
      return { by };
  }
}

const actOf = ({ who, at, why }: NonNullable<BrakeAccount['act']>) => ({ who, at, why });
