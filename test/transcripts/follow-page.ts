import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { PROJECT_DIR } from '../../cdk/bundle.ts';
import { masked } from './transcript.ts';

/** What only asks may be asked again until its answer is as the page says. */
const ASKS = /^npx taintward (audit|doctor|explain|history|holds|lint|pending|status|what-if)\b/;
const HOLD = /\bh[0-9a-f]{8}\b/;
const PATIENCE_MS = 60_000;

/**
 * `sh`: a command of the shell in each line. `text`: typed at the prompt of `npm start`. `yaml`: saved as policy.yaml. Without a
 * language: what the block before it says.
 */
interface Block {
  readonly language: string;
  readonly lines: readonly string[];
}

function blocksOf(source: string): readonly Block[] {
  return [...source.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = '', body = '']) => ({
    language,
    lines: body.trimEnd().split('\n'),
  }));
}

/** What differs from run to run in the lines of `npm start`, beside what differs at the command line. */
const MASKS: readonly (readonly [RegExp, string])[] = [
  [/\bhttp:\/\/127\.0\.0\.1:\d+\/\S*/g, '<link>'],
  [/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/gm, '<time>'],
  [/\b\d\d:\d\d:\d\d\b/g, '<time>'],
  [/\(in [^)]*\)/g, '(in <span>)'],
  [/(?<=(^|\s)in )<span>/g, '<time>'],
];

function comparable(said: string): readonly string[] {
  const known = masked(said.replaceAll('you@laptop', '<you>'));
  return MASKS.reduce((result, [pattern, mask]) => result.replace(pattern, mask), known).split('\n');
}

/** The lines that ought to have been said, and were not. */
function missing(expected: readonly string[], said: string): readonly string[] {
  const lines = comparable(said);
  return comparable(expected.filter((line) => line !== '…').join('\n')).filter(
    (line) => !lines.includes(line),
  );
}

/** The two terminals of who follows a page, in a directory of their own. */
class Follower {
  readonly #env: NodeJS.ProcessEnv;
  readonly #dir = mkdtempSync(join(tmpdir(), 'follower-'));
  #service: ChildProcessWithoutNullStreams | undefined;
  /** What the service said since it was started or told something. */
  #heard = '';
  #hold = '';

  constructor(t: TestContext, env: NodeJS.ProcessEnv) {
    this.#env = env;
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
    this.#heard = '';
    const service = spawn(process.execPath, [join(PROJECT_DIR, 'functions/local/main.ts'), ...args], {
      cwd: this.#dir,
      env: this.#env,
    });
    for (const stream of [service.stdout, service.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk) => {
        this.#heard += chunk;
      });
    }
    this.#service = service;
  }

  async #run(command: string): Promise<string> {
    const shell = spawn(
      'sh',
      ['-c', `npx() { shift; "$NODE" "$TAINTWARD" "$@"; }\n${command.replace(HOLD, this.#hold)}`],
      {
        cwd: this.#dir,
        env: {
          ...this.#env,
          NODE: process.execPath,
          TAINTWARD: join(PROJECT_DIR, 'functions/cli/taintward.js'),
        },
      },
    );
    const [said, complained, [code]] = await Promise.all([
      text(shell.stdout),
      text(shell.stderr),
      once(shell, 'close'),
    ]);
    // With 2, something was shown that needs somebody.
    assert.ok(
      code === 0 || (code === 2 && ASKS.test(command)),
      `${command} ends with ${code}: ${complained}`,
    );
    this.#hold = HOLD.exec(said)?.[0] ?? this.#hold;
    return said;
  }

  async #runUntil(command: string, expected: readonly string[]): Promise<void> {
    const deadlineAt = Date.now() + PATIENCE_MS;
    for (;;) {
      const said = await this.#run(command);
      const lines = missing(expected, said);
      if (lines.length === 0) return;
      if (!ASKS.test(command) || Date.now() > deadlineAt) {
        assert.fail(`${command} does not say\n${lines.join('\n')}\nbut\n${comparable(said).join('\n')}`);
      }
    }
  }

  async #hears(expected: readonly string[]): Promise<void> {
    const service = this.#service;
    assert.ok(service, 'npm start comes first');
    const signal = AbortSignal.timeout(PATIENCE_MS);
    for (;;) {
      const lines = missing(expected, this.#heard);
      if (lines.length === 0) return;
      try {
        await once(service.stdout, 'data', { signal });
      } catch {
        assert.fail(
          `npm start does not say\n${lines.join('\n')}\nbut\n${comparable(this.#heard).join('\n')}`,
        );
      }
    }
  }

  /** Does what a block says, and waits until what comes of it is as expected. */
  async follow({ language, lines }: Block, expected: readonly string[]): Promise<void> {
    if (language === 'yaml') return writeFileSync(join(this.#dir, 'policy.yaml'), lines.join('\n'));
    for (const [index, line] of lines.entries()) {
      const last = index === lines.length - 1 ? expected : [];
      if (language === 'text') {
        this.#heard = '';
        this.#service?.stdin.write(`${line}\n`);
        await this.#hears(last);
        if (line === 'quit') await this.#ended();
      } else if (line.startsWith('npm start')) {
        await this.#start(line.split(' ').slice(3));
        await this.#hears(last);
      } else {
        await this.#runUntil(line, last);
      }
    }
  }
}

/**
 * Follows a page of docs/, command after command: whatever a block without a language shows has to be said, but for times and names.
 * `names`: what is called otherwise where it is followed. `env`: the environment of its commands.
 */
export async function followPage(
  t: TestContext,
  page: string,
  {
    names = [],
    env = process.env,
  }: {
    readonly names?: Iterable<readonly [string, string]>;
    readonly env?: NodeJS.ProcessEnv;
  } = {},
): Promise<void> {
  const source = readFileSync(join(PROJECT_DIR, 'docs', page), 'utf8');
  const blocks = blocksOf([...names].reduce((said, [name, here]) => said.replaceAll(name, here), source));
  const follower = new Follower(t, env);
  for (const [index, block] of blocks.entries()) {
    if (block.language === '') continue;
    const next = blocks[index + 1];
    await follower.follow(block, next?.language === '' ? next.lines : []);
  }
}
