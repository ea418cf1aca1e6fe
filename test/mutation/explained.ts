/** One mutation of one place, as a reader sees it: the lines that it touches, before and after, with single spaces. */
export interface Mutation {
  /** From the root of the repository. */
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

/** A mutation that no test can tell, and why. */
export interface Explained extends Mutation {
  readonly why: string;
}

/** What Stryker says of a mutant: what stands in place of what; lines count from 1. */
interface Mutant {
  readonly replacement?: string | undefined;
  readonly location: Readonly<Record<'start' | 'end', { readonly line: number; readonly column: number }>>;
}

/** What a mutant changes in the source of its file. */
export function mutationOf({ replacement, location }: Mutant, file: string, source: string): Mutation {
  const { start, end } = location;
  const lines = source.split('\n').slice(start.line - 1, end.line);
  const head = (lines[0] ?? '').slice(0, start.column - 1);
  const tail = (lines.at(-1) ?? '').slice(end.column - 1);
  return { file, before: singleSpaced(lines.join('\n')), after: singleSpaced(head + replacement + tail) };
}

/** A text without its line breaks and indents. */
export const singleSpaced = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

const SECTION = /^## `(.+)`$/;
const BLOCK = /^```diff\n([\s\S]*?)\n```\n\n(?!```|#)(\S[\s\S]*?)(?=\n\n|\n*$(?![\s\S]))/gm;

/**
 * Reads the page of explained mutants: a section for each file, and in it a `diff` block for each place (`-` before, one `+`
 * for each mutation of it), each followed by a paragraph that says why no test can tell. Throws when a block is not of
 * that form.
 */
export function readExplained(page: string): readonly Explained[] {
  const sections = page.split(/^(?=## `)/m).filter((section) => section.startsWith('## `'));
  return sections.flatMap((section) => {
    const [heading = '', ...rest] = section.split('\n');
    const file = SECTION.exec(heading)?.[1];
    if (file === undefined) throw new Error(`"${heading}" names no file: write ## and the file in backticks`);
    const blocks = [...rest.join('\n').matchAll(BLOCK)];
    if (blocks.length !== rest.filter((line) => line === '```diff').length) {
      throw new Error(`${file}: every diff block needs a paragraph behind it that says why no test can tell`);
    }
    return blocks.flatMap(([, diff = '', why = '']) => {
      const [before, ...after] = diff.split('\n');
      if (!before?.startsWith('- ') || after.length === 0 || !after.every((line) => line.startsWith('+ '))) {
        throw new Error(`a block of ${file} is not one line with - and the others with +: ${diff}`);
      }
      return after.map((line) => ({
        file,
        before: before.slice(2),
        after: line.slice(2),
        why: singleSpaced(why),
      }));
    });
  });
}

/** Mutations as sections of the page of explained mutants, without the reasons. */
export function explainable(mutations: readonly Mutation[]): string {
  const files = Map.groupBy(mutations, ({ file }) => file);
  const sections = [...files].map(([file, inFile]) => {
    const places = Map.groupBy(inFile, ({ before }) => before);
    const blocks = [...places].map(([before, each]) =>
      ['```diff', `- ${before}`, ...each.map(({ after }) => `+ ${after}`), '```'].join('\n'),
    );
    return [`## \`${file}\``, ...blocks].join('\n\n');
  });
  return sections.join('\n\n');
}
