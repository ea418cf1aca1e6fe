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

/** A call of a program by a page, with its arguments. */
export interface Call {
  readonly program: string;
  readonly args: readonly string[];
}

/** The programs that pages may call. Other programs are not found. */
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

/** Ends a call in the record; no argument contains it. */
const END = '\u001e';

/**
 * Records its call, and prints a word that is valid in most places, usually as an ARN. `grep` finds nothing, so that no
 * loop waits indefinitely for something to disappear.
 */
const NOTE = `#!/bin/sh
printf '%s\\0' "\${0##*/}" "$@" '${END}' >>"$CALLS"
[ "\${0##*/}" = date ] && echo 1795000000 || echo arn:aws:sns:eu-west-1:123456789012:noted
[ "\${0##*/}" != grep ]
`;

/** No background processes exist to be killed. */
const PRELUDE = 'kill() { :; }';

/**
 * Returns the calls in a page's shell blocks, including loops and substitutions; none of the calls reaches its program.
 * Fails where the shell rejects a block, or where a block calls an unexpected program.
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
