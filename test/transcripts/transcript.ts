import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { run } from '#functions/cli/run.ts';
import { AwsClients } from '#shared/access/aws-clients.ts';
import { connector } from '#shared/access/connect.ts';
import { localContextConnection } from '#shared/access/local-context-connection.ts';
import { localUser } from '#shared/access/local-user.ts';
import { type OpenFleetDeps, openFleet, openLive } from '#shared/operations/fleet/open-fleet.ts';
import { systemClock } from '#shared/time/clock.ts';
import { assertPublished } from '#test/contracts/published-schemas.ts';

/** The output and the exit code of a command. */
export interface Printed {
  readonly out: string;
  readonly err: string;
  readonly code: number;
}

/** Runs `taintward` with these arguments on real adapters, without a terminal. */
export async function taintward(...args: readonly string[]): Promise<Printed> {
  const printed = { out: '', err: '' };
  const connect = connector({
    aws: new AwsClients(),
    clock: systemClock,
    localContext: localContextConnection,
  });
  const complain = (text: string) => {
    printed.err += text;
  };
  const deps: OpenFleetDeps = { clock: systemClock, connect, hint: (text) => complain(`${text}\n`) };
  const print = (text: string) => {
    printed.out += text;
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
    // One refresh is enough.
    watch: async (read) => print(await read()),
  });
  assertPublished(args, printed.out);
  return { ...printed, code };
}

/** Parts that differ between runs, and their replacements. */
const MASKS: readonly (readonly [RegExp, string])[] = [
  [/\bit is v\d[\w.+-]*\w/g, 'it is <version>'],
  [/(?<=^(Versions: .*| {2}ok {3}versions .*))\d+\.\d+\.\d+/gm, '<version>'],
  [/(?<=(kubernetes|cli|service|version): )v?\d+\.\d+\.\d+/g, '<version>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<time>'],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uuid>'],
  [/(?<=<uuid> +)\d+\.\d+\.\d+/g, '<version>'],
  [/\bh[0-9a-f]{8}\b/g, '<hold>'],
  [/\bs[0-9a-f]{8}\b/g, '<stop>'],
  [/\bv\d+\.\d+\.\d+[\w.+-]*/g, '<version>'],
  [/\(in [^)]*\)/g, '(in <span>)'],
  [/\b(\d+ ?(ms|[dhms]))+ ago\b|(?<=\()now(?=\))/g, '<span> ago'],
  [/(?<= {2}|\b(after|in) |\] |toleration \d+: )(\d+(ms|[dhms]))+(?= {2,}|$)/gm, '<span>'],
  [/-?\b\d+ ?ms\b( (ahead of|behind))?/g, '<ms>'],
  [/("?\w+Ms"?: )\d+/g, '$1<ms>'],
  [/\b(web|checkout|logs)-[a-z0-9]{5,10}(-[a-z0-9]{5})?\b/g, '$1-<hash>'],
  [/\/(tmp|var)\/\S*?(?=[\s:;,)]|$)/gm, '<dir>'],
  // A link belongs to its reader.
  [/(?<!\/)\b127\.0\.0\.1:\d+/g, '<server>'],
  [/[ \t]+$/gm, ''],
  // The width of columns depends on the masked values.
  [/(?<=\S) {2,}/g, '   '],
];

/**
 * The delay of an eviction is known only to the process that observed its completion, which sometimes fails on a busy
 * machine.
 */
export const LATENESS: readonly (readonly [RegExp, string])[] = [
  [/(?<=^.* evicted .*Z +)(\d+(ms|[dhms]))+/gm, ''],
  [/^ +delayMs: \d+\n/gm, ''],
];

/** Returns the command line's output, without the parts that differ between runs. */
export const masked = (text: string): string =>
  MASKS.reduce((result, [pattern, mask]) => result.replace(pattern, mask), text).replaceAll(
    localUser(),
    '<you>',
  );

/** Commands, remarks, exit codes, and lines of data such as `mode: enforce`. */
const EXACT = /^[$#[]|^\s*[\w-]+: \S+$/;

/**
 * Returns a session without the words of its sentences: of a cell with several words, only names, numbers, and other
 * data are left.
 */
export const shapeOf = (session: string): string =>
  session
    .split('\n')
    .map((line) =>
      EXACT.test(line)
        ? line
        : line
            .split(/\s{2,}/)
            .map(shapeOfCell)
            .join('   '),
    )
    .join('\n');

const shapeOfCell = (cell: string): string => {
  const words = cell.trim().split(' ');
  return (words.length === 1 ? words : words.filter((word) => /[^A-Za-z.,:;()'’!?-]/.test(word))).join(' ');
};

/**
 * A session at the command line, which is compared with a recorded file; parts that differ between runs are masked.
 * `node --test --test-update-snapshots` writes the file again.
 */
export class Transcript {
  readonly #always: readonly string[];
  readonly #names: Iterable<readonly [string | RegExp, string]>;
  readonly #run: typeof taintward;
  #text = '';

  /**
   * `always`: arguments of every command, which the record omits. `names`: further parts that differ between runs,
   * texts or global patterns, with their replacements. `run`: the function that runs a command, if not in this process.
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

  /** Runs a command, and records its output. */
  async run(...args: readonly string[]): Promise<Printed> {
    const printed = await this.#run(...args, ...this.#always);
    const words = args.map((word) => (/[\s'"]|^$/.test(word) ? `'${word}'` : word)).join(' ');
    const end = printed.code === 0 ? '' : `[ends with ${printed.code}]\n`;
    this.#text += `$ taintward ${words}\n${printed.out}${printed.err}${end}\n`;
    return printed;
  }

  /** Repeats a command until its output is as expected, and records that output; for at most `withinMs`. */
  async until(
    isAwaited: (printed: Printed) => boolean,
    args: readonly string[],
    withinMs = 60_000,
  ): Promise<void> {
    const deadlineAt = Date.now() + withinMs;
    for (;;) {
      const printed = await this.#run(...args, ...this.#always);
      if (isAwaited(printed)) break;
      assert.ok(
        Date.now() < deadlineAt,
        `taintward ${args.join(' ')} still says: ${printed.out}${printed.err}`,
      );
    }
    await this.run(...args);
  }

  /** Adds a remark on the events in between, for readers. */
  note(text: string): void {
    this.#text += `# ${text}\n\n`;
  }

  /** Compares the session with a file of that path. */
  compare(t: TestContext, path: string): void {
    this.#compare(t, path, this.#session());
  }

  /**
   * Compares the session with a file of that path, but not the words of its sentences: beside real servers a change of
   * words is no reason to run it again.
   */
  compareShape(t: TestContext, path: string): void {
    const session = this.#session();
    const isRewritten = process.execArgv.includes('--test-update-snapshots') || !existsSync(path);
    const recorded = isRewritten ? session : readFileSync(path, 'utf8');
    this.#compare(t, path, shapeOf(session) === shapeOf(recorded) ? recorded : session);
  }

  #session(): string {
    return masked([...this.#names].reduce((text, [name, mask]) => text.replaceAll(name, mask), this.#text));
  }

  #compare(t: TestContext, path: string, session: string): void {
    // Node cuts the difference of long texts.
    if (existsSync(path)) {
      const recorded = readFileSync(path, 'utf8');
      for (const [sign, one, other] of [
        ['+', session, recorded],
        ['-', recorded, session],
      ] as const)
        for (const line of one.split('\n')) if (!other.includes(line)) t.diagnostic(`${sign} ${line}`);
    }
    t.assert.fileSnapshot(session, path, { serializers: [String] });
  }
}
