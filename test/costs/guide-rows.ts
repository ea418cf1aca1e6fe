import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const GUIDE = join(import.meta.dirname, '../../docs/reference/quotas-and-costs.md');

/** Returns the rows of the guide's tables, as lists of cells without emphasis. */
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

/** Returns a row in the guide's format. */
export const rowText = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |`;

/** Reports whether the guide has this row. */
export const guideHas = (row: string): boolean => readFileSync(GUIDE, 'utf8').includes(`\n${row}\n`);
