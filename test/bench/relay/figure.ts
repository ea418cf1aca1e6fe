/** One measured number. */
export interface Figure {
  readonly what: string;
  /** Absent: it was not reached, or could not be measured; `note` says why. */
  readonly value?: number;
  readonly unit: 'MB' | 's' | 'ms' | '% of a core' | 'requests' | 'MB/h';
  /** The value is to be at most this. */
  readonly aim?: number;
  readonly note?: string;
}

export interface BenchOptions {
  /** How long one thing is waited for. */
  readonly capMs: number;
  /** How long the soak takes. */
  readonly soakMs: number;
}

/** Measures something; its figures go to `tell` one by one, so that what comes before a failure is not lost. */
export interface Scenario {
  readonly about: string;
  /** Absent: part of a run of everything. */
  readonly onlyByName?: true;
  run(tell: (figure: Figure) => void, options: BenchOptions): Promise<void>;
}

/** A figure, or that it was not reached in time. */
export const inTime = (
  figure: Omit<Figure, 'value'>,
  value: number | undefined,
  { capMs }: Pick<BenchOptions, 'capMs'>,
): Figure =>
  value === undefined || Number.isNaN(value)
    ? { ...figure, note: `not within ${capMs / 1000} s${figure.note ? `; ${figure.note}` : ''}` }
    : { ...figure, value };

export const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`;
