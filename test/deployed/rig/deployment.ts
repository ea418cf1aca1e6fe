import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { agentsPrefix } from '#shared/aws/agent-names.ts';
import { CommandError, ROOT, run } from './command.ts';
import { accountEnvironment, type EmulatedAccount } from './emulated-account.ts';
import { buildImage, type Image } from './image/build.ts';
import { assigned } from './relay-process.ts';

/** The default name of the stack, and the prefix of all names in it. */
const NAME = 'taintward';

/** Context keys without their prefix. */
type Settings = Readonly<Record<string, string>>;
const COMMAND_WITHIN_MS = 180_000;
/** The program behind `npx cdk` here. */
const CDK = join(import.meta.dirname, 'cdk');

/** The file into which the rig's `cdk` has outputs written, which keeps no outputs of other stacks. */
const OUTPUTS = 'outputs.json';
const OUTPUTS_OF_AGENT = 'agent-outputs.json';

const Outputs = z.record(z.string(), z.record(z.string(), z.string()));

/** The stack in an emulated account, with the default settings unless others are given. */
export class Deployment {
  /** The environment in which `npx cdk`, named by `CDK`, uses the account. */
  readonly environment: NodeJS.ProcessEnv;
  readonly #dir = mkdtempSync(join(tmpdir(), 'taintward-deployed-'));
  readonly #settings: Settings;
  /** Built images, by the hash of their sources. */
  readonly #images = new Map<string, Image>();

  constructor(account: EmulatedAccount, settings: Settings = {}) {
    this.#settings = settings;
    // The user of a container must be able to read it.
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

  /** Runs the guide's steps for an account and region. */
  async bootstrap(): Promise<void> {
    await this.#cdk('bootstrap');
  }

  /** Runs the guide's deployment, with its optional settings. */
  async deploy(settings: Settings = {}, options: readonly string[] = []): Promise<void> {
    await this.#cdk('deploy', options, settings);
  }

  async destroy(): Promise<void> {
    await this.endProtection().catch((error: unknown) => {
      // A test may have destroyed it.
      if (!(error instanceof CommandError && error.message.includes('does not exist'))) throw error;
    });
    await this.#cdk('destroy');
  }

  /** Switches the stack's termination protection off, as the guide does. */
  async endProtection(): Promise<void> {
    const command = 'cloudformation update-termination-protection --no-enable-termination-protection';
    await run('aws', [...command.split(' '), '--stack-name', this.#name], {
      env: this.environment,
      withinMs: COMMAND_WITHIN_MS,
    });
  }

  /** Deploys the resources of a cluster's agent as the guide describes, and returns the agent's environment. */
  async deployAgent(id: string, cluster: string): Promise<Readonly<Record<string, string>>> {
    await this.#cdk('deploy', [`agents/${id}`], agentSettings(id, cluster));
    const stack = `${agentsPrefix(this.#name)}${id}`;
    return assigned(this.#outputOf(stack, 'Environment', OUTPUTS_OF_AGENT));
  }

  async destroyAgent(id: string, cluster: string): Promise<void> {
    await this.#cdk('destroy', [`agents/${id}`], agentSettings(id, cluster));
  }

  /** Returns an output of the last deployment. */
  output(name: string): string {
    return this.#outputOf(this.#name, name);
  }

  /**
   * Returns the image that a task definition names, built from the context that `cdk deploy` passes to docker. Docker
   * is not used here: the stand-in makes the CDK believe that any image was pushed before.
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
