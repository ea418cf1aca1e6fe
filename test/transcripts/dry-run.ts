import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { blocksOf, commandsOf, pageText } from './page.ts';

/** A program that a page calls, with the words that it is given. */
export interface Call {
  readonly program: string;
  readonly args: readonly string[];
}

/** Programs that pages may call. What else they call is not found. */
const PROGRAMS = [
  'aws',
  'base64',
  'cosign',
  'date',
  'docker',
  'env',
  'gh',
  'git',
  'grep',
  'helm',
  'jq',
  'kubectl',
  'npm',
  'npx',
  'rm',
  'sha256sum',
  'sleep',
  'taintward',
  'xargs',
] as const;

/** Ends a call in the notes; no word has it. */
const END = '\u001e';

/**
 * Notes how it was called, and says a word that will do wherever it is read: most often it is an ARN that is asked for. What is searched for
 * is not found, so that nobody waits for ever until it is gone.
 */
const NOTE = `#!/bin/sh
printf '%s\\0' "\${0##*/}" "$@" '${END}' >>"$CALLS"
[ "\${0##*/}" = date ] && echo 1795000000 || echo arn:aws:sns:eu-west-1:123456789012:noted
[ "\${0##*/}" != grep ]
`;

/** Nothing runs in the background that could be ended. */
const PRELUDE = 'kill() { :; }';

/**
 * The calls that a page's blocks of the shell make, loops and substitutions too, none of which reaches its program. Fails where the
 * shell does not understand a block, or where it calls what is not expected of pages.
 */
export function callsOf(page: string): readonly Call[] {
  const dir = mkdtempSync(join(tmpdir(), 'dry-run-'));
  try {
    const [first, ...others] = PROGRAMS;
    writeFileSync(join(dir, first), NOTE);
    chmodSync(join(dir, first), 0o755);
    for (const other of others) symlinkSync(first, join(dir, other));
    const notes = join(dir, 'calls');
    const commands = blocksOf(pageText(page))
      .filter(({ language }) => language === 'sh')
      .flatMap(commandsOf);
    const script = [PRELUDE, ...commands].join('\n');
    const { stderr } = spawnSync('/bin/sh', ['-c', script], {
      cwd: dir,
      env: { PATH: dir, CALLS: notes },
      encoding: 'utf8',
    });
    assert.equal(stderr, '', page);
    return existsSync(notes) ? callsIn(readFileSync(notes, 'utf8')) : [];
  } finally {
    rmSync(dir, { recursive: true });
  }
}

const callsIn = (notes: string): readonly Call[] =>
  notes
    .split(`${END}\0`)
    .slice(0, -1)
    .map((noted) => noted.split('\0').slice(0, -1))
    .map(([program = '', ...args]) => ({ program, args }));
