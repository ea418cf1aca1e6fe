import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

/**
 * `sh`: shell commands. `text`: lines for the prompt of `npm start`. `yaml`: saved as policy.yaml. Without a language:
 * the output of the previous block.
 */
export interface Block {
  readonly language: string;
  readonly lines: readonly string[];
  /** The heading above the block, without its marks. */
  readonly section: string;
}

/** Returns the text of a page: README.md, or one of docs/. */
export const pageText = (page: string): string =>
  readFileSync(join(PROJECT_DIR, page === 'README.md' ? page : join('docs', page)), 'utf8');

export function blocksOf(source: string): readonly Block[] {
  let section = '';
  return [...source.matchAll(/^```(\w*)\n(.*?)^```$|^#+ ([^\n]*)$/gms)].flatMap((found) => {
    const [, language, body = '', heading] = found;
    if (heading !== undefined) section = heading;
    return language === undefined ? [] : [{ language, lines: body.trimEnd().split('\n'), section }];
  });
}

/** Returns the commands of a shell block: each with all of its lines, without the comment after it. */
export function commandsOf({ lines }: Block): readonly string[] {
  const commands: string[] = [];
  let begun = '';
  for (const line of lines) {
    const text = begun === '' ? line : `${begun}\n${line}`;
    begun = isWhole(text) ? '' : text;
    if (begun === '' && text.trim() !== '') commands.push(text.replace(/ +# .*$/, ''));
  }
  if (begun !== '') throw new Error(`No command of the shell: ${begun}`);
  return commands;
}

/** Constructs that may continue in the next line, in addition to lines that end with a continuation. */
const OPENS = /['"(]|\b(for|while|if|case)\b/;

const isWhole = (text: string): boolean =>
  !/[\\|]$/.test(text) && (!OPENS.test(text) || spawnSync('sh', ['-n', '-c', text]).status === 0);

/** Returns the first line of a command, by which it is named. */
export const nameOf = (command: string): string => command.split('\n', 1)[0] ?? '';
