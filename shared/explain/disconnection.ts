import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** That no relay hears a cluster: what changes there is not noticed, while what is scheduled goes on. */
export interface Disconnection {
  /** When one last heard from it; absent: none ever did. */
  readonly since?: EpochMs;
}

/** The same, and what it means for the pods that are told of. */
export interface DisconnectionAccount extends Disconnection {
  /** So many of them are to go, and that is not scheduled until a relay hears of it. */
  readonly unscheduled: number;
}
