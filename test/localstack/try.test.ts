import assert from 'node:assert/strict';
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { freePort } from '#test/aws/server-process.ts';
import { until } from '#test/cluster/rig/until.ts';
import { missing } from '#test/transcripts/follow-page.ts';
import { isFollowed } from '#test/transcripts/followed-pages.ts';
import { blocksOf, commandsOf, nameOf, pageText } from '#test/transcripts/page.ts';

const PAGE = 'tutorials/localstack.md';
/** The port in the page. */
const PORT = '4566';
/** Read-only commands, which are repeated until their output matches the page. */
const READS = /^(npx taintward (explain|history|pending)|aws (sqs|scheduler|dynamodb|logs)) /;
/** The first run installs half a gigabyte. */
const PATIENCE_MS = 15 * 60_000;
/** Files that are not part of a clone, or are created there. */
const LEFT_OUT = ['.git', 'node_modules', 'cdk.out', '.taintward'];

/** Returns a clone of the repository after `npm ci`, and a folder for temporary files. */
function cloned(t: TestContext): { readonly clone: string; readonly temporary: string } {
  const folder = mkdtempSync(join(tmpdir(), 'taintward-try-'));
  t.after(() => rmSync(folder, { recursive: true, maxRetries: 5 }));
  const [clone, temporary] = [join(folder, 'clone'), join(folder, 'tmp')];
  cpSync(PROJECT_DIR, clone, {
    recursive: true,
    filter: (path) => !LEFT_OUT.includes(basename(path)),
  });
  symlinkSync(join(PROJECT_DIR, 'node_modules'), join(clone, 'node_modules'));
  mkdirSync(temporary);
  return { clone, temporary };
}

/** The only terminal of a user who follows the page. */
class Terminal {
  readonly #shell: ChildProcessWithoutNullStreams;
  #output = '';
  #commands = 0;

  constructor(t: TestContext, cwd: string, env: NodeJS.ProcessEnv) {
    this.#shell = spawn('bash', { cwd, env });
    for (const stream of [this.#shell.stdout, this.#shell.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
    // The shell's child processes end with it, and the shell ends with its input, which is this process.
    this.#shell.stdin.write("trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n");
    const ended = once(this.#shell, 'exit');
    t.after(async () => {
      this.#shell.stdin.end();
      await ended;
    });
  }

  /** Types a command, waits for the prompt and for all expected output, and returns the output. */
  async run(command: string, expected: readonly string[]): Promise<string> {
    const deadlineAt = Date.now() + PATIENCE_MS;
    for (;;) {
      const from = this.#output.length;
      const printed = () => this.#output.slice(from);
      await this.#prompt(command);
      const goesOn = command.endsWith('&');
      if (goesOn && expected.length > 0)
        await until(
          `${command} says what it should`,
          () => missing(expected, printed()).length === 0,
          PATIENCE_MS,
        );
      const lines = missing(expected, printed());
      if (lines.length === 0) return printed();
      assert.ok(
        READS.test(command) && Date.now() < deadlineAt,
        `${command} does not say\n${lines.join('\n')}\nbut\n${printed()}`,
      );
    }
  }

  async #prompt(command: string): Promise<void> {
    this.#commands += 1;
    const mark = new RegExp(`^prompt ${this.#commands}: (\\d+)$`, 'm');
    // The command must not read the shell's input.
    this.#shell.stdin.write(`{ ${command}\n} </dev/null\necho "prompt ${this.#commands}: $?"\n`);
    const [, code] = await until(
      `the prompt after ${command}`,
      () => mark.exec(this.#output) ?? undefined,
      PATIENCE_MS,
    );
    assert.equal(code, '0', `${command} ends with ${code}:\n${this.#output}`);
  }
}

test("the page's commands evict a pod by functions on LocalStack, print the expected output, and leave nothing behind", async (t) => {
  assert.ok(process.env['KUBECONFIG'], 'KUBECONFIG names no cluster');
  const { clone, temporary } = cloned(t);
  const port = String(await freePort());
  const here = (text: string): string =>
    text
      .replaceAll(PORT, port)
      .replace('npm run --silent localstack', `npm run --silent localstack -- --port ${port}`);
  const terminal = new Terminal(t, clone, { ...process.env, TMPDIR: temporary, PROBE_PORT: '0' });
  const blocks = blocksOf(pageText(PAGE));
  let typed = 0;
  let evictedAfter = 0;
  for (const [index, block] of blocks.entries()) {
    if (block.language !== 'sh') continue;
    const next = blocks[index + 1];
    const expected = next?.language === '' ? next.lines.map(here) : [];
    const commands = commandsOf(block);
    for (const [at, command] of commands.entries()) {
      typed += 1;
      if (command.startsWith('kubectl apply')) evictedAfter = typed;
      if (!isFollowed(PAGE, nameOf(command), 'localstack')) continue;
      const printed = await terminal.run(here(command), at === commands.length - 1 ? expected : []);
      if (command.startsWith('aws logs')) assert.match(printed, /"pod":"now".*"event":"pod\.evicted"/);
    }
  }
  assert.ok(evictedAfter > 0 && evictedAfter <= 10, `the pod is evicted after ${evictedAfter} commands`);
  await until('the relay has stopped', () =>
    readFileSync(join(clone, 'relay.log'), 'utf8').includes('"relay.stopped"'),
  );
  await until('LocalStack is gone with its files', () =>
    readdirSync(temporary).every((name) => !/localstack/.test(name)),
  );
  const processes = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' });
  assert.deepEqual(
    processes.split('\n').filter((line) => line.includes(temporary)),
    [],
  );
});
