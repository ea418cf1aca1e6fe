import {
  observeWindowOffset,
  observeWindowRect,
  type Range,
  Virtualizer,
  windowScroll,
} from '@tanstack/virtual-core';
import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';
import { useCallback, useLayoutEffect, useMemo, useReducer, useRef } from 'preact/hooks';
import { clusters } from './live.ts';
import { ask, route } from './route.ts';

export interface Column<Row> {
  /** `cluster`: the column is shown only if there are several. */
  readonly key: string;
  readonly head: string;
  /** Width as in `grid-template-columns`. */
  readonly width: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Sort key of a row. Absent: the column isn't sortable. */
  readonly by?: (row: Row) => string | number;
  /** Left out where a table without it fits, and one with it does not. Cards have it. */
  readonly minor?: true;
  /** Numbers are aligned right. */
  readonly numeric?: true;
  /** The head is visible only to screen readers. */
  readonly unseen?: true;
}

/** A column, from its head and what a cell shows. */
export const column = <Row>(head: Omit<Column<Row>, 'cell'>, cell: Column<Row>['cell']): Column<Row> => ({
  ...head,
  cell,
});

interface Order {
  readonly column: string;
  readonly direction: 'ascending' | 'descending';
}

interface RowsProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Sort order until the user chooses one: `due`, or `-due` for descending. Absent: the rows are in order. */
  readonly sort?: string;
  /** Present: text wraps. Absent: text is cut off after one line. */
  readonly wrap?: true;
}

/** In pixels, before it is measured: on one line, as in the styles, or as a card with stacked columns. */
const ROW_HEIGHT = 45;
const CARD_HEIGHT = 150;
/** Returns the pixels that columns need, with gaps of 0.75 rem and a padding of 2.25 rem, as in the styles. */
function leastWidth(columns: readonly { readonly width: string }[]): number {
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
  const widths = columns.map(({ width }) => Number(/[\d.]+/.exec(width)?.[0]));
  return rem * widths.reduce((sum, width) => sum + width + 0.75, 2.25 - 0.75);
}

/**
 * Scrolls with the page and renders only visible rows, and the focused one. Assistive technology gets counts and
 * indexes.
 */
export function Rows<Row>({ label, columns: given, rows: found, keyOf, sort, wrap }: RowsProps<Row>): VNode {
  const all = given.filter(({ key }) => key !== 'cluster' || clusters.value.length > 1);
  const order = sort === undefined ? undefined : orderOf(route.value.query.get('sort') || sort);
  const rows = useMemo(() => sorted(found, given, order), [found, order?.column, order?.direction]);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const body = useRef<HTMLDivElement>(null);
  const focused = useRef<string | undefined>(undefined);
  // The same function for the same rows: with another one, the virtualizer places all rows again.
  const keyAt = useCallback((index: number) => (rows[index] ? keyOf(rows[index]) : String(index)), [rows]);
  const fits = (shown: typeof all) =>
    (body.current?.clientWidth ?? Number.POSITIVE_INFINITY) >= leastWidth(shown);
  const fitting = () => [all, all.filter(({ minor }) => !minor)].find(fits);
  const table = fitting();
  const columns = table ?? all;
  const isCards = table === undefined;
  const options = {
    count: rows.length,
    getScrollElement: () => window,
    estimateSize: () => (isCards ? CARD_HEIGHT : ROW_HEIGHT),
    overscan: 6,
    getItemKey: keyAt,
    scrollMargin: topOf(body.current),
    observeElementRect: observeWindowRect,
    observeElementOffset: observeWindowOffset,
    scrollToFn: windowScroll,
    initialOffset: () => window.scrollY,
    initialRect: { width: window.innerWidth, height: window.innerHeight },
    rangeExtractor: (range: Range) => inSight(range, focusedIndex()),
    onChange: () => redraw(0),
  };
  const focusedIndex = () =>
    focused.current === undefined ? -1 : rows.findIndex((row) => keyOf(row) === focused.current);
  const virtualizer = useMemo(() => new Virtualizer<Window, HTMLElement>(options), []);
  virtualizer.setOptions(options);
  // Rows above may be higher than estimated: corrected only while the user isn't scrolling.
  virtualizer.shouldAdjustScrollPositionOnItemSizeChange = (
    { start },
    _delta,
    { isScrolling, scrollOffset },
  ) => !isScrolling && start < (scrollOffset ?? 0);
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  // The position and width of the table are known only after it is rendered.
  useLayoutEffect(() => {
    if (topOf(body.current) !== virtualizer.options.scrollMargin || fitting()?.length !== table?.length)
      redraw(0);
  });
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => redraw(0));
    if (body.current) observer.observe(body.current);
    return () => observer.disconnect();
  }, []);
  // The heights of cards are not those of lines.
  useLayoutEffect(() => virtualizer.measure(), [isCards]);
  const template = columns.map(({ width }) => width).join(' ');
  return html`
    <div
      class=${`rows ${wrap ? 'wrap' : ''} ${isCards ? 'cards' : ''}`}
      role="table"
      aria-label=${label}
      aria-rowcount=${rows.length + 1}
      aria-colcount=${columns.length}
      style=${{ '--columns': template }}
      onFocusIn=${(event: FocusEvent) => {
        const row = event.target instanceof Element ? event.target.closest('[data-key]') : null;
        focused.current = row instanceof HTMLElement ? row.dataset['key'] : undefined;
      }}
      onFocusOut=${() => {
        focused.current = undefined;
      }}
    >
      <div class="heads" role="rowgroup">
        <div class="row" role="row" aria-rowindex="1">
          ${columns.map((column) => html`<${Head} key=${column.key} ...${{ column, order }} />`)}
        </div>
      </div>
      <div
        class="body"
        role="rowgroup"
        ref=${body}
        style=${{ height: `${virtualizer.getTotalSize()}px` }}
      >
        ${virtualizer.getVirtualItems().map(({ index, key, start }) => {
          const row = rows[index];
          if (row === undefined) return undefined;
          return html`
            <div
              key=${key}
              class="row"
              role="row"
              aria-rowindex=${index + 2}
              data-index=${index}
              data-key=${key}
              ref=${virtualizer.measureElement}
              style=${{ transform: `translateY(${start - virtualizer.options.scrollMargin}px)` }}
            >
              ${columns.map(
                ({ key: column, head, numeric, unseen, cell }) => html`
                  <div
                    key=${column}
                    role="cell"
                    data-column=${column}
                    data-head=${unseen ? undefined : head}
                    class=${numeric ? 'numeric' : undefined}
                  >
                    ${cell(row)}
                  </div>
                `,
              )}
            </div>
          `;
        })}
      </div>
    </div>
  `;
}

/** Returns the top of an element in the page, in whole pixels. */
const topOf = (element: HTMLElement | null): number =>
  element ? Math.round(element.getBoundingClientRect().top + window.scrollY) : 0;

function inSight({ startIndex, endIndex, overscan, count }: Range, focused: number): number[] {
  const first = Math.max(0, startIndex - overscan);
  const last = Math.min(count - 1, endIndex + overscan);
  const seen = Array.from({ length: Math.max(0, last - first + 1) }, (_, place) => first + place);
  if (focused < 0 || (focused >= first && focused <= last)) return seen;
  return focused < first ? [focused, ...seen] : [...seen, focused];
}

function Head<Row>({ column, order }: { readonly column: Column<Row>; readonly order?: Order }): VNode {
  const { key, head, by: sortsBy, numeric, unseen } = column;
  const sorted = order?.column === key ? order.direction : undefined;
  const next = sorted === 'ascending' ? `-${key}` : key;
  return html`
    <div
      role="columnheader"
      data-column=${key}
      class=${numeric ? 'numeric' : undefined}
      aria-sort=${sortsBy && order ? (sorted ?? 'none') : undefined}
    >
      ${
        sortsBy && order
          ? html`<button type="button" class="sort" onClick=${() => ask({ sort: next })}>
              ${head}<span class="arrow" aria-hidden="true"></span>
            </button>`
          : html`<span class=${unseen ? 'unseen' : undefined}>${head}</span>`
      }
    </div>
  `;
}

const orderOf = (text: string): Order => ({
  column: text.replace(/^-/, ''),
  direction: text.startsWith('-') ? 'descending' : 'ascending',
});

/** Sorts rows. Ties keep their order. */
function sorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[], order?: Order): readonly Row[] {
  const sortKey = columns.find(({ key }) => key === order?.column)?.by;
  if (!sortKey) return rows;
  const sign = order?.direction === 'ascending' ? 1 : -1;
  return rows
    .map((row) => ({ row, value: sortKey(row) }))
    .sort((a, b) => (a.value < b.value ? -sign : a.value > b.value ? sign : 0))
    .map(({ row }) => row);
}
