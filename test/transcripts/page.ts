import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

/**
 * `sh`: commands of the shell. `text`: typed at the prompt of `npm start`. `yaml`: saved as policy.yaml. Without a language: what the
 * block before it says.
 */
export interface Block {
  readonly language: string;
  readonly lines: readonly string[];
  /** The heading that it stands below, without its marks. */
  readonly section: string;
}

/** The text of a page: README.md, or one of docs/. */
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

/** The commands of a block of the shell: each with all of its lines, without the remark behind it. */
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

/** What may go on in the next line, besides a line that says so by its end. */
const OPENS = /['"(]|\b(for|while|if|case)\b/;

const isWhole = (text: string): boolean =>
  !/[\\|]$/.test(text) && (!OPENS.test(text) || spawnSync('sh', ['-n', '-c', text]).status === 0);

/** The first line of a command, by which it is named. */
export const nameOf = (command: string): string => command.split('\n', 1)[0] ?? '';
