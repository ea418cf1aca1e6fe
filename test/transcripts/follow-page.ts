import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { FOLLOWED_PAGES, isFollowed, type Suite } from './followed-pages.ts';
import { type Block, blocksOf, commandsOf, nameOf, pageText } from './page.ts';
import { masked } from './transcript.ts';

/** Read-only commands may be repeated until their output matches the page. */
const READS = /^npx taintward (audit|doctor|explain|history|holds|pending|policy diff|status|what-if)\b/;
const HOLD = /\bh[0-9a-f]{8}\b/;
const FUNCTION = /^\w+\(\) \{\n/;
const PATIENCE_MS = 60_000;

/**
 * The program behind `npx`. It is a program, so that a variable that is set for one call is not set for later commands.
 */
const NPX = `#!/bin/sh
program=$1
shift
case $program in
taintward) exec "$NODE" "$TAINTWARD" "$@" ;;
cdk) exec "$CDK" "$@" ;;
*) exit 127 ;;
esac
`;

/** Loads the variables that earlier commands have set. */
const PRELUDE = `
set -a
[ ! -e "$VARIABLES" ] || . "$VARIABLES"
trap 'export -p >"$VARIABLES"' EXIT
`;

/** Parts of the lines of `npm start` that differ between runs, in addition to the command line's. */
const MASKS: readonly (readonly [RegExp, string])[] = [
  [/\bhttp:\/\/127\.0\.0\.1:\d+\/\S*/g, '<link>'],
  [/\b\d\d:\d\d:\d\dZ/g, '<time>'],
  [/(?<=(^|\s)in )<span>/g, '<time>'],
];

function comparable(printed: string): readonly string[] {
  const known = masked(printed.replaceAll('you@laptop', '<you>'));
  return MASKS.reduce((result, [pattern, mask]) => result.replace(pattern, mask), known).split('\n');
}

/** Returns the expected lines that are missing in the output. */
export function missing(expected: readonly string[], printed: string): readonly string[] {
  const lines = comparable(printed);
  return comparable(expected.filter((line) => line !== '…').join('\n')).filter(
    (line) => !lines.includes(line),
  );
}

/** The two terminals of a user who follows a page, in a directory of their own. */
class Follower {
  readonly #env: NodeJS.ProcessEnv;
  readonly #dir = mkdtempSync(join(tmpdir(), 'follower-'));
  #service: ChildProcessWithoutNullStreams | undefined;
  /** The service's output since its start or since the last typed line. */
  #printed = '';
  #hold = '';
  /** Shell functions that earlier commands have defined. */
  readonly #functions: string[] = [];

  constructor(t: TestContext, env: NodeJS.ProcessEnv) {
    this.#env = env;
    symlinkSync(join(PROJECT_DIR, 'cdk'), join(this.#dir, 'cdk'));
    mkdirSync(join(this.#dir, 'bin'));
    writeFileSync(join(this.#dir, 'bin/npx'), NPX, { mode: 0o755 });
    t.after(async () => {
      await this.#kill();
      rmSync(this.#dir, { recursive: true });
    });
  }

  async #ended(): Promise<void> {
    const service = this.#service;
    if (service === undefined || service.exitCode !== null || service.signalCode !== null) return;
    await once(service, 'exit');
  }

  async #kill(): Promise<void> {
    this.#service?.kill('SIGKILL');
    await this.#ended();
  }

  async #start(args: readonly string[]): Promise<void> {
    await this.#kill();
    this.#printed = '';
    const service = spawn(process.execPath, [join(PROJECT_DIR, 'functions/service/main.ts'), ...args], {
      cwd: this.#dir,
      env: this.#env,
    });
    for (const stream of [service.stdout, service.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk) => {
        this.#printed += chunk;
      });
    }
    this.#service = service;
  }

  async #run(command: string): Promise<string> {
    const script = [PRELUDE, ...this.#functions, command.replace(HOLD, this.#hold)].join('\n');
    const shell = spawn('sh', ['-c', script], {
      cwd: this.#dir,
      env: {
        CDK: 'cdk',
        ...this.#env,
        PATH: `${join(this.#dir, 'bin')}:${this.#env['PATH']}`,
        NODE: process.execPath,
        TAINTWARD: join(PROJECT_DIR, 'functions/cli/taintward.js'),
        VARIABLES: join(this.#dir, '.variables'),
      },
    });
    const [printed, complained, [code]] = await Promise.all([
      text(shell.stdout),
      text(shell.stderr),
      once(shell, 'close'),
    ]);
    // Code 2 means that an action is required.
    assert.ok(
      code === 0 || (code === 2 && READS.test(command)),
      `${command} ends with ${code}: ${complained}`,
    );
    this.#hold = HOLD.exec(printed)?.[0] ?? this.#hold;
    if (FUNCTION.test(command)) this.#functions.push(command);
    return printed;
  }

  async #runUntil(command: string, expected: readonly string[]): Promise<void> {
    const deadlineAt = Date.now() + PATIENCE_MS;
    for (;;) {
      const printed = await this.#run(command);
      const lines = missing(expected, printed);
      if (lines.length === 0) return;
      if (!READS.test(command) || Date.now() > deadlineAt) {
        assert.fail(`${command} does not say\n${lines.join('\n')}\nbut\n${comparable(printed).join('\n')}`);
      }
    }
  }

  async #prints(expected: readonly string[]): Promise<void> {
    const service = this.#service;
    assert.ok(service, 'npm start comes first');
    const signal = AbortSignal.timeout(PATIENCE_MS);
    for (;;) {
      const lines = missing(expected, this.#printed);
      if (lines.length === 0) return;
      try {
        await once(service.stdout, 'data', { signal });
      } catch {
        assert.fail(
          `npm start does not say\n${lines.join('\n')}\nbut\n${comparable(this.#printed).join('\n')}`,
        );
      }
    }
  }

  /** Saves the text of a block as policy.yaml. */
  save({ lines }: Block): void {
    writeFileSync(join(this.#dir, 'policy.yaml'), lines.join('\n'));
  }

  /** Types a line at the prompt of `npm start`, and waits until its output is as expected. */
  async type(line: string, expected: readonly string[]): Promise<void> {
    this.#printed = '';
    this.#service?.stdin.write(`${line}\n`);
    await this.#prints(expected);
    if (line === 'quit') await this.#ended();
  }

  /** Runs a shell command, likewise. */
  async run(command: string, expected: readonly string[]): Promise<void> {
    if (!command.startsWith('npm start')) return this.#runUntil(command, expected);
    await this.#start(command.split(' ').slice(3));
    await this.#prints(expected);
  }
}

export interface FollowOptions {
  /** The suite that follows the page. */
  readonly suite: Suite;
  /** Names on the page, and their replacements in the suite. */
  readonly names?: Iterable<readonly [string, string]>;
  /** The environment of its commands; `CDK` names the program behind `npx cdk`. */
  readonly env?: NodeJS.ProcessEnv;
  /** The sections that are followed; absent: all. */
  readonly sections?: (heading: string) => boolean;
  /** The content of policy.yaml before the page sets it. */
  readonly policy?: string;
  /** Prefixes of commands that the suite's environment does not support. */
  readonly without?: readonly string[];
}

/**
 * Follows a page, command after command, as far as a suite runs them. The output must contain the text of each block
 * without a language, except for times and names.
 */
export async function followPage(
  t: TestContext,
  page: string,
  { suite, names = [], env = process.env, sections = () => true, policy = '', without = [] }: FollowOptions,
): Promise<void> {
  assert.equal(FOLLOWED_PAGES[page]?.by, suite, `${page} is followed by its own suite`);
  const called = (text: string): string =>
    [...names].reduce((printed, [name, here]) => printed.replaceAll(name, here), text);
  const blocks = blocksOf(pageText(page));
  const follower = new Follower(t, env);
  follower.save({ language: 'yaml', lines: [policy], section: '' });
  for (const [index, block] of blocks.entries()) {
    if (!sections(block.section)) continue;
    const next = blocks[index + 1];
    const expected = next?.language === '' ? next.lines.map(called) : [];
    if (block.language === 'yaml') follower.save({ ...block, lines: block.lines.map(called) });
    if (block.language !== 'sh' && block.language !== 'text') continue;
    const printed = block.language === 'sh' ? commandsOf(block) : block.lines;
    for (const [at, command] of printed.entries()) {
      const awaited = at === printed.length - 1 ? expected : [];
      if (block.language === 'text') await follower.type(called(command), awaited);
      else if (without.some((beginning) => command.startsWith(beginning)))
        t.diagnostic(`${page}: not known here: ${nameOf(command)}`);
      else if (isFollowed(page, nameOf(command), suite)) await follower.run(called(command), awaited);
    }
  }
}
