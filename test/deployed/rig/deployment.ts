import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { ROOT, run } from './command.ts';
import { accountEnvironment, type EmulatedAccount } from './emulated-account.ts';
import { buildImage, type Image } from './image/build.ts';

/** What the stack is called by default, and what the names of all that is in it start with. */
const NAME = 'taintward';

/** Context keys without their prefix. */
type Settings = Readonly<Record<string, string>>;
const COMMAND_WITHIN_MS = 180_000;
/** What `npx cdk` is here. */
const CDK = join(import.meta.dirname, 'cdk');

const Outputs = z.record(z.string(), z.record(z.string(), z.string()));

/** The stack in an emulated account, as it is by default unless settings say otherwise. */
export class Deployment {
  /** The environment in which `npx cdk`, which `CDK` names, leads to the account. */
  readonly environment: NodeJS.ProcessEnv;
  readonly #dir = mkdtempSync(join(tmpdir(), 'taintward-deployed-'));
  readonly #settings: Settings;
  /** Images that were built, by the hash of what they were built from. */
  readonly #images = new Map<string, Image>();

  constructor(account: EmulatedAccount, settings: Settings = {}) {
    this.#settings = settings;
    // The user of a container looks into it.
    chmodSync(this.#dir, 0o755);
    this.environment = {
      ...accountEnvironment(account.url),
      CDK,
      CDK_PROJECT: ROOT,
      CDK_OUT: this.#dir,
      CDK_ENVIRONMENT: account.environment,
    };
  }

  /** What the guide says to do once per account and region. */
  async bootstrap(): Promise<void> {
    await this.#cdk('bootstrap');
  }

  /** What the guide says, with options, if it says so. */
  async deploy(settings: Settings = {}, options: readonly string[] = []): Promise<void> {
    await this.#cdk('deploy', options, settings);
  }

  async destroy(): Promise<void> {
    await this.#cdk('destroy');
  }

  /** What the last deployment has printed. */
  output(name: string): string {
    const all = Outputs.parse(JSON.parse(readFileSync(join(this.#dir, 'outputs.json'), 'utf8')));
    const outputs = all[this.#name] ?? {};
    const value = outputs[name];
    if (value === undefined) {
      throw new Error(`The stack has no output ${name}: there are ${Object.keys(outputs).join(', ')}.`);
    }
    return value;
  }

  /**
   * The image that a task definition names, built from what `cdk deploy` gives to docker. It does not ask docker here: the stand-in has
   * it believe that any image was pushed before.
   */
  image(name: string): Image {
    const [hash = ''] = name.split(':').slice(-1);
    const image =
      this.#images.get(hash) ??
      buildImage(join(this.#dir, 'cdk.out', `asset.${hash}`), join(this.#dir, 'images', hash));
    this.#images.set(hash, image);
    return image;
  }

  functionName(name: string): string {
    return `${this.#name}-${name}`;
  }

  logGroup(name: string): string {
    return `/aws/lambda/${this.functionName(name)}`;
  }

  close(): void {
    rmSync(this.#dir, { recursive: true, force: true });
  }

  get #name(): string {
    return this.#settings['name'] ?? NAME;
  }

  async #cdk(command: string, options: readonly string[] = [], settings: Settings = {}): Promise<void> {
    const context = Object.entries({ ...this.#settings, ...settings }).flatMap(([key, value]) => [
      '-c',
      `taintward:${key}=${value}`,
    ]);
    await run(CDK, [command, ...options, ...context], { env: this.environment, withinMs: COMMAND_WITHIN_MS });
  }
}
