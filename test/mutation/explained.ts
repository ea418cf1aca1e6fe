/** A mutant in Stryker's report: its mutator, its replacement, and its location; lines count from 1. */
export interface Mutant {
  readonly mutatorName: string;
  readonly replacement?: string | undefined;
  readonly location: Readonly<Record<'start' | 'end', { readonly line: number; readonly column: number }>>;
}

const EXPLAINED = /Equivalent mutants? \(([^)]+)\): \S/;
const COUNTED = /^(\w+)(?: × (\d+))?$/;

/** The survivors of a file without a comment, and the comments without survivors. */
export interface Review {
  readonly unexplained: readonly Mutant[];
  /** The line and the mutator of each comment without survivors. */
  readonly needless: readonly string[];
}

/**
 * Compares the survivors of a file with its comments. Above a line, `Equivalent mutants (MUTATOR × COUNT, …):` precedes
 * the reason for which no test can detect them. If the count of a line and mutator differs, all of its survivors are
 * unexplained.
 */
export function review(source: string, survivors: readonly Mutant[]): Review {
  const lines = source.split('\n');
  const explained = explainedOf(lines);
  const found = Map.groupBy(
    survivors.filter((each) => !isProven(each, lines)),
    ({ mutatorName, location }) => `${location.start.line}: ${mutatorName}`,
  );
  return {
    unexplained: [...found].flatMap(([key, each]) => (each.length > (explained.get(key) ?? 0) ? each : [])),
    needless: [...explained].flatMap(([key, count]) => ((found.get(key)?.length ?? 0) < count ? [key] : [])),
  };
}

/** Reports whether the mutant changes a `default:` that the type checker proves to be unreachable. */
const isProven = ({ location: { start, end } }: Mutant, lines: readonly string[]): boolean =>
  lines[start.line - 1]?.trim() === 'default:' && lines[end.line - 1]?.endsWith('satisfies never;') === true;

/** Returns the number of explained mutants, by line and mutator. Throws for a comment of another form. */
function explainedOf(lines: readonly string[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const [index, line] of lines.entries()) {
    if (!line.includes('Equivalent mutant')) continue;
    let end = index;
    while (lines[end]?.trimStart().startsWith('//')) end += 1;
    const comment = lines.slice(index, end).map((each) => each.trim().slice('// '.length));
    const [, mutators] = EXPLAINED.exec(comment.join(' ')) ?? [];
    if (mutators === undefined)
      throw new Error(`line ${index + 1} names no mutator, or no reason: ${line.trim()}`);
    for (const each of mutators.split(', ')) {
      const [, mutator, count = '1'] = COUNTED.exec(each) ?? [];
      if (mutator === undefined)
        throw new Error(`line ${index + 1}: "${each}" is not MUTATOR or MUTATOR × COUNT`);
      found.set(`${end + 1}: ${mutator}`, Number(count));
    }
  }
  return found;
}

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
