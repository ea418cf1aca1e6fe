/** A series in the format of promtool's tests. */
export interface InputSeries {
  readonly series: string;
  /** A value for each scrape; `_`: there was none. */
  readonly values: string;
}

/** Returns the series that Prometheus has after these scrapes of one target; each scrape is the served text. */
export function scrapedSeries(scrapes: readonly string[]): readonly InputSeries[] {
  const values = new Map<string, string[]>();
  for (const [index, text] of scrapes.entries()) {
    for (const line of text.split('\n')) {
      const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (name === undefined || value === undefined) continue;
      const series = `${name}{${[labels, 'job="taintward"', 'instance="localhost"'].filter(Boolean).join(',')}}`;
      const known = values.get(series) ?? scrapes.map(() => '_');
      known[index] = value;
      values.set(series, known);
    }
  }
  return [...values].map(([series, each]) => ({ series, values: each.join(' ') }));
}
