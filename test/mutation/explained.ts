/** What Stryker says of a mutant: by which mutator, and what stands in place of what; lines count from 1. */
export interface Mutant {
  readonly mutatorName: string;
  readonly replacement?: string | undefined;
  readonly location: Readonly<Record<'start' | 'end', { readonly line: number; readonly column: number }>>;
}

const EXPLAINED = /Equivalent mutants? \(([^)]+)\): \S/;
const COUNTED = /^(\w+)(?: × (\d+))?$/;

/** Which mutants of a file survived though no comment says so, and which comments say so of mutants that did not. */
export interface Review {
  readonly unexplained: readonly Mutant[];
  /** Each as it is to be told: its line, and the mutator. */
  readonly needless: readonly string[];
}

/**
 * Compares the mutants of a file that survived with what its comments say: above a line, `Equivalent mutants (MUTATOR × COUNT, …):` and
 * why no test can tell them. All of a line that one mutator made are unexplained where they are not as many as that.
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

/** Reports whether the mutant is of a `default:` that the type checker proves to be never reached. */
const isProven = ({ location: { start, end } }: Mutant, lines: readonly string[]): boolean =>
  lines[start.line - 1]?.trim() === 'default:' && lines[end.line - 1]?.endsWith('satisfies never;') === true;

/** How many mutants are explained, by the line that they are of and their mutator. Throws for a comment of another form. */
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

/** A mutant as a reader sees it: its mutator, and the lines that it touches, before and after, with single spaces. */
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
