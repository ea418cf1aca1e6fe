import { init } from 'echarts';

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
const BAR_HEIGHT = 22;
const INK = '#24292f';
const COLOURS = ['#1f6feb', '#bc4c00', '#8c959f'];
const FONT = 'system-ui, Helvetica, Arial, sans-serif';

/** Draws bars as an SVG; the same bars give the same text. */
export function barChart({ title, unit, things, series, logarithmic }: Bars): string {
  const height = 110 + things.length * (series.length * BAR_HEIGHT + 16);
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height });
  try {
    chart.setOption({
      animation: false,
      backgroundColor: '#ffffff',
      color: COLOURS,
      textStyle: { fontFamily: FONT, color: INK },
      title: { text: title, left: 8, top: 8, textStyle: { fontSize: 15, color: INK } },
      legend: { left: 8, top: 36, itemHeight: 10, textStyle: { color: INK } },
      grid: { left: 210, right: 90, top: 68, bottom: 34 },
      xAxis: {
        type: logarithmic ? 'log' : 'value',
        name: unit,
        nameLocation: 'end',
        axisLabel: { color: INK, hideOverlap: true },
      },
      yAxis: {
        type: 'category',
        inverse: true,
        data: [...things],
        axisTick: { show: false },
        axisLabel: { color: INK, width: 190, overflow: 'break' },
      },
      series: series.map(({ name, values }) => ({
        type: 'bar',
        name,
        barWidth: BAR_HEIGHT - 8,
        data: values.map((value) => value ?? null),
        label: {
          show: true,
          position: 'right',
          color: INK,
          formatter: ({ value }: { value?: unknown }) => label(value),
        },
      })),
    });
    // The names of classes count the charts of the process.
    return `${chart.renderToSVGString().replaceAll(/\bzr\d+-/g, '')}\n`;
  } finally {
    chart.dispose();
  }
}

const label = (value: unknown): string =>
  typeof value === 'number' ? Number(value.toPrecision(3)).toLocaleString('en-US') : '';
