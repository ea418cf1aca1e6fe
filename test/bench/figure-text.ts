import { type Figure, median, meetsAim, ratioOf } from './result.ts';

/** Returns a value for tables: at least three digits, and its unit. */
export const amount = (value: number | undefined, unit: string): string =>
  value === undefined || Number.isNaN(value) ? '–' : `${digits(value)}${unit === '' ? '' : ` ${unit}`}`;

/** Returns three digits if there are fewer before the point, otherwise all of those. */
export const digits = (value: number): string =>
  Number(Math.abs(value) < 100 ? value.toPrecision(3) : value.toFixed(0)).toLocaleString('en-US', {
    maximumSignificantDigits: 15,
  });

export const ratioText = (ratio: number | undefined): string =>
  ratio === undefined ? '–' : `${digits(ratio)}×`;

/** Returns the aim and whether it is met; empty without an aim. */
export function aimText(figure: Figure): string {
  const { aim, unit } = figure;
  if (aim === undefined) return '';
  const bound = (value: number) => (aim.of === 'ratio' ? ratioText(value) : amount(value, unit));
  const bounds = [
    ...(aim.atLeast === undefined ? [] : [`≥ ${bound(aim.atLeast)}`]),
    ...(aim.atMost === undefined ? [] : [`≤ ${bound(aim.atMost)}`]),
  ].join(', ');
  const met = meetsAim(figure);
  return met === undefined ? bounds : `${bounds} ${met ? '✓' : '✗'}`;
}

/** The columns of the table of figures, and the line below them. */
export const HEAD = '| figure | ours | peer | ratio | aim |  |\n| --- | --- | --- | --- | --- | --- |';

/** Returns a figure of a scenario as a Markdown row of that table, with medians. */
export function figureRow(scenario: string, figure: Figure): string {
  const { what, ours, peer, unit, note = '' } = figure;
  const cells = [
    `${scenario}: ${what}`,
    amount(median(ours), unit),
    peer ? `${amount(median(peer.values), unit)} (${peer.name})` : '',
    peer ? ratioText(ratioOf(figure)) : '',
    aimText(figure),
    note,
  ];
  return `| ${cells.join(' | ')} |`;
}
