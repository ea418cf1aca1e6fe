import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { run } from '#functions/cli/run.ts';
import { AwsClients } from '#shared/access/aws-clients.ts';
import { connector } from '#shared/access/connect.ts';
import { localContextConnection } from '#shared/access/local-context-connection.ts';
import { localUser } from '#shared/access/local-user.ts';
import { type OpenFleetDeps, openFleet, openLive } from '#shared/operations/fleet/open-fleet.ts';
import { systemClock } from '#shared/time/clock.ts';

/** What a command said, and how it ended. */
export interface Said {
  readonly out: string;
  readonly err: string;
  readonly code: number;
}

/** Runs `taintward` with these words on real adapters, as nobody at a terminal does. */
export async function taintward(...args: readonly string[]): Promise<Said> {
  const said = { out: '', err: '' };
  const connect = connector({
    aws: new AwsClients(),
    clock: systemClock,
    localContext: localContextConnection,
  });
  const complain = (text: string) => {
    said.err += text;
  };
  const deps: OpenFleetDeps = { clock: systemClock, connect, hint: (text) => complain(`${text}\n`) };
  const print = (text: string) => {
    said.out += text;
  };
  const code = await run(args, {
    fleet: (choice) => openFleet(choice, deps),
    live: (choice) => openLive(choice, deps),
    clock: systemClock,
    connect,
    print,
    complain,
    paint: (_, text) => text,
    progress: () => undefined,
    // Once is enough.
    watch: async (look) => print(await look()),
  });
  return { ...said, code };
}

/** What differs from run to run, and by what it is replaced. */
const MASKS: readonly (readonly [RegExp, string])[] = [
  [/\bit is v\d[\w.+-]*\w/g, 'it is <version>'],
  [/(?<=^(Versions: .*| {2}ok {3}versions .*))\d+\.\d+\.\d+/gm, '<version>'],
  [/(?<=(kubernetes|cli|service|version): )v?\d+\.\d+\.\d+/g, '<version>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<time>'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>'],
  [/(?<=<uuid> +)\d+\.\d+\.\d+/g, '<version>'],
  [/\bh[0-9a-f]{8}\b/g, '<hold>'],
  [/\bv\d+\.\d+\.\d+[\w.+-]*/g, '<version>'],
  [/\bafter \d+\.\d s\b/g, 'after <span>'],
  [/-?\b\d+ ms\b( (ahead of|behind))?/g, '<ms>'],
  [/\b(\d+ [dhms])( \d+ [dhms])? ago\b|(?<=\()now(?=\))/g, '<span> ago'],
  [/\b(\d+ [dhms])( \d+ [dhms])?(?= {2,}|$)/gm, '<span>'],
  [/("?\w+Ms"?: )\d+/g, '$1<ms>'],
  [/\b(web|checkout|logs)-[a-z0-9]{5,10}(-[a-z0-9]{5})?\b/g, '$1-<hash>'],
  [/\/(tmp|var)\/\S*?(?=[\s:;,)]|$)/gm, '<dir>'],
  // A link is its reader's.
  [/(?<!\/)\b127\.0\.0\.1:\d+/g, '<server>'],
  [/[ \t]+$/gm, ''],
  // Columns are as wide as what was masked.
  [/(?<=\S) {2,}/g, '   '],
];

/** How late an eviction was is told only by who saw it done: not so on a busy machine, at times. */
export const LATENESS: readonly (readonly [RegExp, string])[] = [
  [/(?<=^.* evicted .*Z +)\d+ ms\b/gm, ''],
  [/^ +lateMs: \d+\n/gm, ''],
];

/** What the command line says, without what differs from run to run. */
export const masked = (text: string): string =>
  MASKS.reduce((result, [pattern, mask]) => result.replace(pattern, mask), text).replaceAll(
    localUser(),
    '<you>',
  );

/**
 * A session at the command line, to be compared with a file in which it was written down, what changes with each run masked.
 * `node --test --test-update-snapshots` writes the file anew.
 */
export class Transcript {
  readonly #always: readonly string[];
  readonly #names: Iterable<readonly [string | RegExp, string]>;
  readonly #run: typeof taintward;
  #text = '';

  /**
   * `always`: words that each command has, and nobody needs to read. `names`: what else differs from run to run, texts or global
   * patterns, and by what it is replaced. `run`: how a command is run, if not in this process.
   */
  constructor({
    always = [],
    names = [],
    run: runCommand = taintward,
  }: {
    readonly always?: readonly string[];
    readonly names?: Iterable<readonly [string | RegExp, string]>;
    readonly run?: typeof taintward;
  } = {}) {
    this.#always = always;
    this.#names = names;
    this.#run = runCommand;
  }

  /** Says a command, and notes what it answers. */
  async say(...args: readonly string[]): Promise<Said> {
    const said = await this.#run(...args, ...this.#always);
    const words = args.map((word) => (/[\s'"]|^$/.test(word) ? `'${word}'` : word)).join(' ');
    const end = said.code === 0 ? '' : `[ends with ${said.code}]\n`;
    this.#text += `$ taintward ${words}\n${said.out}${said.err}${end}\n`;
    return said;
  }

  /** Says a command again and again until its answer is as awaited, which is noted; for at most `withinMs`. */
  async until(isAwaited: (said: Said) => boolean, args: readonly string[], withinMs = 60_000): Promise<void> {
    const deadlineAt = Date.now() + withinMs;
    for (;;) {
      const said = await this.#run(...args, ...this.#always);
      if (isAwaited(said)) break;
      assert.ok(Date.now() < deadlineAt, `taintward ${args.join(' ')} still says: ${said.out}${said.err}`);
    }
    await this.say(...args);
  }

  /** What happened meanwhile, for who reads it. */
  note(text: string): void {
    this.#text += `# ${text}\n\n`;
  }

  /** Compares it with a file of that path. */
  compare(t: TestContext, path: string): void {
    const named = [...this.#names].reduce((text, [name, mask]) => text.replaceAll(name, mask), this.#text);
    t.assert.fileSnapshot(masked(named), path, { serializers: [String] });
  }
}
