const MINUTE_MS = 60_000;

/** For so long a dead relay has no successor, and a relay that lost its lease does not know. */
export const LONGEST_OUTAGE_MS = 60_000;
export const LONGEST_UNKNOWING_MS = 20_000;

/** What goes wrong in a history, and what may still be asked of the service then. */
export interface Climate {
  /** How often a request fails, before or after it had its effect. */
  readonly trouble: number;
  /** How often a process dies on a request. */
  readonly death: number;
  /** How often somebody else commits first, or a queue takes a part only. */
  readonly conflict: number;
  /** How often a message that was handled comes again, up to a quarter of an hour later. */
  readonly duplicate: number;
  /** Times at which a service is away, for minutes. */
  readonly spells: number;
  /** The most relays that are replaced, and that die, in the course of things. */
  readonly relayChanges: number;
  /** How often a watch breaks such that it is listed anew, per change. */
  readonly gap: number;
  /** How long it may take until the service has heard what happened. */
  readonly hearingMs: number;
  /** How late an eviction may be; `undefined`: that depends. */
  readonly latenessMs: number | undefined;
}

const FAIR: Climate = {
  ...{ trouble: 0, death: 0, conflict: 0, duplicate: 0, spells: 0, relayChanges: 0, gap: 0 },
  hearingMs: 10_000,
  latenessMs: 10_000,
};

export const CLIMATES = {
  fair: FAIR,
  /** Messages come again, however old. */
  echoing: { ...FAIR, duplicate: 0.5 },
  /** Relays come and go, and watches break. */
  shifting: { ...FAIR, relayChanges: 4, gap: 0.05, latenessMs: FAIR.hearingMs + LONGEST_OUTAGE_MS },
  breezy: {
    ...{ trouble: 0.02, death: 0.003, conflict: 0.02, duplicate: 0.1, spells: 0, relayChanges: 4, gap: 0.03 },
    // A delta that is dead-lettered is made up for by the next resync.
    hearingMs: 20 * MINUTE_MS,
    latenessMs: undefined,
  },
  stormy: {
    ...{ trouble: 0.08, death: 0.015, conflict: 0.1, duplicate: 0.3, spells: 6, relayChanges: 4, gap: 0.03 },
    hearingMs: 40 * MINUTE_MS,
    latenessMs: undefined,
  },
} as const satisfies Record<string, Climate>;

export type ClimateName = keyof typeof CLIMATES;
export const CLIMATE_NAMES = ['fair', 'echoing', 'shifting', 'breezy', 'stormy'] as const;
