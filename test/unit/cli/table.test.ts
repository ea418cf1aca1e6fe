import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { layout } from '#functions/cli/fit.ts';
import { type Column, tableOf, tableText } from '#functions/cli/output.ts';
import type { Paint } from '#functions/cli/paint.ts';

const ROWS = [
  ['POD', 'BECAUSE'],
  ['shop/web-5d4f9c7b6d-x2x7p', 'the taint was removed before it was due'],
  ['shop/db-0', ''],
];

test('prints one line per row if there is room', () => {
  assert.equal(tableText(ROWS, 68), tableText(ROWS));
  assert.equal(
    tableText(ROWS),
    'POD                         BECAUSE\n' +
      'shop/web-5d4f9c7b6d-x2x7p   the taint was removed before it was due\n' +
      'shop/db-0\n',
  );
});

test('wraps the longest cells, at spaces first', () => {
  assert.equal(
    tableText(ROWS, 50),
    'POD                         BECAUSE\n' +
      'shop/web-5d4f9c7b6d-x2x7p   the taint was removed\n' +
      '                            before it was due\n' +
      'shop/db-0\n',
  );
});

test("wraps names after punctuation where spaces don't suffice", () => {
  assert.equal(
    tableText(ROWS, 30),
    'POD               BECAUSE\n' +
      'shop/             the taint\n' +
      'web-5d4f9c7b6d-   was removed\n' +
      'x2x7p             before it\n' +
      '                  was due\n' +
      'shop/db-0\n',
  );
});

const shown: readonly Column<readonly string[]>[] = [
  { head: 'POD', of: ([pod = '']) => pod },
  { head: 'BECAUSE', of: ([, because = '']) => because },
];
const narrow: Paint = Object.assign((_: string, text: string) => `\u001b[1m${text}\u001b[22m`, {
  columns: 50,
});

test('wraps at the width of the terminal minus the indent, and not at all with -o wide', () => {
  const rows = ROWS.slice(1);
  const lines = (style: { readonly wide: boolean; readonly indent?: number }) =>
    tableOf(rows, shown, { paint: narrow, ...style }).split('\n').length;
  assert.deepEqual(
    [lines({ wide: false }), lines({ wide: false, indent: 20 }), lines({ wide: true })],
    [5, 7, 4],
  );
});

test('never wraps a colored cell, because its color would extend into its neighbors', () => {
  const red = '\u001b[31mthe node is gone\u001b[39m';
  assert.ok(
    tableText(
      [
        ['A', 'B'],
        [red, 'it is not known why that is so'],
      ],
      30,
    ).includes(red),
  );
});

test('keeps all text and keeps lines within their column unless part of a name is longer', () => {
  const cell = fc.stringMatching(/^[a-z0-9/:=,.-]{0,12}( [a-z0-9/:=,.-]{1,12}){0,4}$/);
  const table = fc
    .integer({ min: 1, max: 5 })
    .chain((columns) =>
      fc.array(fc.array(cell, { minLength: columns, maxLength: columns }), { minLength: 1, maxLength: 6 }),
    );
  fc.assert(
    fc.property(table, fc.integer({ min: 0, max: 120 }), (rows, room) => {
      const { widths, lines } = layout(rows, room);
      for (const row of rows) {
        for (const [column, text] of row.entries()) {
          const found = lines(text, column);
          assert.equal(found.join('').replaceAll(' ', ''), text.replaceAll(' ', ''));
          for (const line of found) assert.ok(line.length <= (widths[column] ?? 0), `${line} in ${widths}`);
        }
      }
    }),
  );
});
