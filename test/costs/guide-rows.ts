import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const GUIDE = join(import.meta.dirname, '../../docs/reference/quotas-and-costs.md');

/** The rows of the guide's tables, as lists of cells without emphasis. */
export const guideRows = (): readonly (readonly string[])[] =>
  readFileSync(GUIDE, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.replaceAll('**', '').trim()),
    );

/** A row as the guide writes it. */
export const rowText = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

/** Whether the guide has this row. */
export const guideHas = (row: string): boolean => readFileSync(GUIDE, 'utf8').includes(`\n${row}\n`);
