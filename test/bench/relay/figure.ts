/** One measured number. */
export interface Figure {
  readonly what: string;
  /** Absent: the value was not reached, or could not be measured; `note` gives the reason. */
  readonly value?: number;
  readonly unit: 'MB' | 's' | 'ms' | '% of a core' | 'requests' | 'MB/h';
  /** The maximum of the value. */
  readonly aim?: number;
  readonly note?: string;
}

export interface BenchOptions {
  /** The maximum time to wait for one result. */
  readonly capMs: number;
  /** The duration of the soak. */
  readonly soakMs: number;
}

/** Measures one aspect; its figures are passed to `tell` one by one, so that figures before a failure are not lost. */
export interface Scenario {
  readonly about: string;
  /** Absent: part of a run of everything. */
  readonly onlyByName?: true;
  run(report: (figure: Figure) => void, options: BenchOptions): Promise<void>;
}

/** Returns a figure, or a note that it was not reached in time. */
export const inTime = (
  figure: Omit<Figure, 'value'>,
  value: number | undefined,
  { capMs }: Pick<BenchOptions, 'capMs'>,
): Figure =>
  value === undefined || Number.isNaN(value)
    ? { ...figure, note: `not within ${capMs / 1000} s${figure.note ? `; ${figure.note}` : ''}` }
    : { ...figure, value };

export const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`;
