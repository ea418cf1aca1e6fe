import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { ROOT, run } from './command.ts';
import { accountEnvironment, type EmulatedAccount } from './emulated-account.ts';

/** What the stack is called, and what the names of all that is in it start with. */
const STACK = 'taintward';
/** A relay of our own, because the stand-in runs no containers; a table that goes with the stack. */
const SETTINGS = { name: STACK, relay: 'external', retainTable: 'false' };

type Settings = Readonly<Record<string, string>>;
const COMMAND_WITHIN_MS = 180_000;
const CDKLOCAL = join(ROOT, 'node_modules/.bin/cdklocal');

const Outputs = z.record(z.string(), z.record(z.string(), z.string()));

/** The stack in an emulated account. */
export class Deployment {
  readonly #account: EmulatedAccount;
  readonly #dir = mkdtempSync(join(tmpdir(), 'taintward-deployed-'));
  readonly #settings: typeof SETTINGS;
  #outputs: Readonly<Record<string, string>> = {};

  /** `settings`: context keys without their prefix. */
  constructor(account: EmulatedAccount, settings: Partial<typeof SETTINGS> = {}) {
    this.#account = account;
    this.#settings = { ...SETTINGS, ...settings };
  }

  /** What the guide says to do once per account and region. */
  async bootstrap(): Promise<void> {
    await this.#cdk('bootstrap', [this.#account.environment]);
  }

  /** What the guide says, with options, if it says so. `settings`: context keys without their prefix. */
  async deploy(settings: Settings = {}, options: readonly string[] = []): Promise<void> {
    const outputs = join(this.#dir, 'outputs.json');
    const args = ['--require-approval', 'never', '--outputs-file', outputs, ...options];
    await this.#cdk('deploy', args, settings);
    this.#outputs = Outputs.parse(JSON.parse(readFileSync(outputs, 'utf8')))[this.#settings.name] ?? {};
  }

  async destroy(): Promise<void> {
    await this.#cdk('destroy', ['--force']);
  }

  output(name: string): string {
    const value = this.#outputs[name];
    if (value === undefined) {
      throw new Error(`The stack has no output ${name}: there are ${Object.keys(this.#outputs).join(', ')}.`);
    }
    return value;
  }

  functionName(name: string): string {
    return `${this.#settings.name}-${name}`;
  }

  logGroup(name: string): string {
    return `/aws/lambda/${this.functionName(name)}`;
  }

  close(): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #cdk(command: string, args: readonly string[], settings: Settings = {}): Promise<void> {
    const context = Object.entries({ ...this.#settings, ...settings }).flatMap(([key, value]) => [
      '-c',
      `taintward:${key}=${value}`,
    ]);
    await run(CDKLOCAL, [command, ...args, ...context, '--output', join(this.#dir, 'cdk.out')], {
      env: accountEnvironment(this.#account.url),
      withinMs: COMMAND_WITHIN_MS,
    });
  }
}
