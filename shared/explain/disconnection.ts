import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** No relay is connected to a cluster: changes there are missed, while scheduled evictions continue. */
export interface Disconnection {
  /** When a relay was last connected; absent: never. */
  readonly since?: EpochMs;
}

/** A disconnection, and its effect on the pods of an answer. */
export interface DisconnectionAccount extends Disconnection {
  /** Number of these pods whose eviction is not scheduled until a relay connects. */
  readonly unscheduled: number;
}
