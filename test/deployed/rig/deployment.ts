import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { agentsPrefix } from '#shared/aws/agent-names.ts';
import { ROOT, run } from './command.ts';
import { accountEnvironment, type EmulatedAccount } from './emulated-account.ts';
import { buildImage, type Image } from './image/build.ts';
import { assigned } from './relay-process.ts';

/** What the stack is called by default, and what the names of all that is in it start with. */
const NAME = 'taintward';

/** Context keys without their prefix. */
type Settings = Readonly<Record<string, string>>;
const COMMAND_WITHIN_MS = 180_000;
/** What `npx cdk` is here. */
const CDK = join(import.meta.dirname, 'cdk');

/** Where the rig's `cdk` has outputs written, which keeps none of other stacks. */
const OUTPUTS = 'outputs.json';
const OUTPUTS_OF_AGENT = 'agent-outputs.json';

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
      ...(account.isOurs ? { CDK_APPLIES_LOOPS: 'yes' } : {}),
      ...(account.isLocalStack ? { CDK_ENDPOINT: 'localstack' } : {}),
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

  /** Deploys what an agent of that cluster has, as its guide says, and returns what it is to be told. */
  async deployAgent(id: string, cluster: string): Promise<Readonly<Record<string, string>>> {
    await this.#cdk('deploy', [`agents/${id}`], agentSettings(id, cluster));
    const stack = `${agentsPrefix(this.#name)}${id}`;
    return assigned(this.#outputOf(stack, 'Environment', OUTPUTS_OF_AGENT));
  }

  async destroyAgent(id: string, cluster: string): Promise<void> {
    await this.#cdk('destroy', [`agents/${id}`], agentSettings(id, cluster));
  }

  /** What the last deployment has printed. */
  output(name: string): string {
    return this.#outputOf(this.#name, name);
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

  #outputOf(stack: string, name: string, file = OUTPUTS): string {
    const all = Outputs.parse(JSON.parse(readFileSync(join(this.#dir, file), 'utf8')));
    const outputs = all[stack] ?? {};
    const value = outputs[name];
    if (value === undefined) {
      throw new Error(`${stack} has no output ${name}: there are ${Object.keys(outputs).join(', ')}.`);
    }
    return value;
  }

  async #cdk(command: string, options: readonly string[] = [], settings: Settings = {}): Promise<void> {
    const context = Object.entries({ ...this.#settings, ...settings }).flatMap(([key, value]) => [
      '-c',
      `taintward:${key}=${value}`,
    ]);
    const ofAgent = 'agents' in settings;
    const env = { ...this.environment, CDK_OUTPUTS: ofAgent ? OUTPUTS_OF_AGENT : OUTPUTS };
    await run(CDK, [command, ...options, ...context], { env, withinMs: COMMAND_WITHIN_MS });
  }
}

const agentSettings = (id: string, cluster: string): Settings => ({
  agents: JSON.stringify({ [id]: { cluster } }),
});
