import type { Equivalent } from './equivalent.ts';

/** A mutant in Stryker's report: its mutator, its replacement, and its location; lines count from 1. */
export interface Mutant {
  readonly mutatorName: string;
  readonly replacement?: string | undefined;
  readonly location: Readonly<Record<'start' | 'end', { readonly line: number; readonly column: number }>>;
}

/** The unexplained survivors of a file, and the explanations without survivors. */
export interface Review {
  readonly unexplained: readonly Mutant[];
  /** The mutator and the line of each explanation that names more mutants than survive. */
  readonly needless: readonly string[];
}

/**
 * Compares the survivors of a file with its explanations. If more mutants of a line and mutator survive than are
 * explained, all of them are unexplained.
 */
export function review(
  source: string,
  survivors: readonly Mutant[],
  explanations: readonly Equivalent[],
): Review {
  const lines = source.split('\n');
  const explained = new Map(
    explanations.flatMap(({ line, mutants }) =>
      Object.entries(mutants).map(([mutator, count]) => [keyOf(mutator, line), count] as const),
    ),
  );
  const found = Map.groupBy(
    survivors.filter((each) => !isProven(each, lines)),
    ({ mutatorName, location }) => keyOf(mutatorName, lines[location.start.line - 1] ?? ''),
  );
  return {
    unexplained: [...found].flatMap(([key, each]) => (each.length > (explained.get(key) ?? 0) ? each : [])),
    needless: [...explained].flatMap(([key, count]) => ((found.get(key)?.length ?? 0) < count ? [key] : [])),
  };
}

const keyOf = (mutator: string, line: string) => `${mutator}: ${line.trim()}`;

/** Reports whether the mutant changes a `default:` that the type checker proves to be unreachable. */
const isProven = ({ location: { start, end } }: Mutant, lines: readonly string[]): boolean =>
  lines[start.line - 1]?.trim() === 'default:' && lines[end.line - 1]?.endsWith('satisfies never;') === true;

/**
 * Returns a mutant in readable form: its mutator, and the lines that it changes, before and after, with single spaces.
 */
export function shown(
  { mutatorName, replacement, location: { start, end } }: Mutant,
  source: string,
): string {
  const lines = source.split('\n').slice(start.line - 1, end.line);
  const head = (lines[0] ?? '').slice(0, start.column - 1);
  const tail = (lines.at(-1) ?? '').slice(end.column - 1);
  const spaced = (text: string) => text.replaceAll(/\s+/g, ' ').trim();
  return `${start.line}: ${mutatorName}\n- ${spaced(lines.join('\n'))}\n+ ${spaced(head + replacement + tail)}`;
}
