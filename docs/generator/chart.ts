/** What a picture of bars shows: for each thing, one bar of each series. */
export interface Bars {
  readonly title: string;
  readonly unit: string;
  readonly things: readonly string[];
  /** A value for each thing; `undefined`: there is none. */
  readonly series: readonly { readonly name: string; readonly values: readonly (number | undefined)[] }[];
  /** Whether each step along the axis is ten times the one before. */
  readonly logarithmic?: boolean;
}

const WIDTH = 760;
const BAR_HEIGHT = 14;
const GAP = 16;
const LEFT = 210;
const RIGHT = 90;
const TOP = 68;
const INK = '#24292f';
const GRID = '#dbdee4';
const COLORS = ['#1f6feb', '#bc4c00', '#8c959f'];

/** Draws bars as an SVG; the same bars give the same text. */
export function barChart({ title, unit, things, series, logarithmic = false }: Bars): string {
  const rowHeight = series.length * (BAR_HEIGHT + 4) + GAP;
  const bottom = TOP + things.length * rowHeight;
  const values = series.flatMap((each) => each.values.filter((value) => value !== undefined));
  const axis = axisOf(Math.min(...values), Math.max(...values), logarithmic);
  const xOf = (value: number): number => round(LEFT + axis.share(value) * (WIDTH - LEFT - RIGHT));
  const parts = [
    text(8, 22, title, 'font-size="15" font-weight="bold"'),
    ...series.map(
      ({ name }, at) => rect(8 + at * 150, 38, 20, 10, colorOf(at)) + text(34 + at * 150, 47, name),
    ),
    ...axis.ticks.map(
      (tick) =>
        `<path d="M${xOf(tick)} ${TOP}V${bottom}" stroke="${GRID}"/>` +
        text(xOf(tick), bottom + 16, label(tick), 'text-anchor="middle"'),
    ),
    text(WIDTH - RIGHT + 12, bottom + 4, unit),
    ...things.flatMap((thing, row) => {
      const top = TOP + row * rowHeight + GAP / 2;
      const bars = series.map(({ values: of }, at) => {
        const [value, y] = [of[row], top + at * (BAR_HEIGHT + 4)];
        if (value === undefined) return '';
        const end = Math.max(xOf(value), LEFT + 1);
        return (
          rect(LEFT, y, round(end - LEFT), BAR_HEIGHT, colorOf(at)) + text(end + 5, y + 11, label(value))
        );
      });
      return [text(LEFT - 8, top + (rowHeight - GAP) / 2 + 4, thing, 'text-anchor="end"'), ...bars];
    }),
  ];
  const height = bottom + 34;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, Helvetica, Arial, sans-serif" font-size="12" fill="${INK}">
${[rect(0, 0, WIDTH, height, '#ffffff'), ...parts].filter((part) => part !== '').join('\n')}
</svg>
`;
}

/** From zero in round steps, or, where it is logarithmic, in powers of ten; `share` is a value's place on it, from 0 to 1. */
function axisOf(least: number, most: number, logarithmic: boolean) {
  if (logarithmic) {
    const [from, to] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most))];
    return {
      ticks: Array.from({ length: to - from + 1 }, (_, at) => 10 ** (from + at)),
      share: (value: number) => (Math.log10(value) - from) / (to - from),
    };
  }
  const power = 10 ** Math.floor(Math.log10(most / 5));
  const step = power * ([1, 2, 5].find((each) => most / (each * power) <= 6) ?? 10);
  const steps = Math.ceil(most / step);
  return {
    ticks: Array.from({ length: steps + 1 }, (_, at) => at * step),
    share: (value: number) => value / (steps * step),
  };
}

const colorOf = (at: number): string => COLORS[at] ?? INK;
const round = (value: number): number => Math.round(value * 10) / 10;
const rect = (x: number, y: number, width: number, height: number, fill: string): string =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${fill}"/>`;
const text = (x: number, y: number, of: string, attributes = ''): string =>
  `<text x="${x}" y="${y}" ${attributes}>${of.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</text>`.replace(
    ' >',
    '>',
  );

const label = (value: number): string => Number(value.toPrecision(3)).toLocaleString('en-US');
