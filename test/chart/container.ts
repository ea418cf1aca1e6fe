import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { until } from '#test/cluster/rig/until.ts';

/** Denies all writes, as a read-only root file system does. */
const READ_ONLY = '--permission --allow-fs-read=*';

const Variable = z.union([
  z.strictObject({ name: z.string(), value: z.string() }),
  z.strictObject({
    name: z.string(),
    valueFrom: z.object({ fieldRef: z.object({ fieldPath: z.literal('status.podIP') }) }),
  }),
]);
const Container = z.looseObject({
  command: z.array(z.string()),
  args: z.array(z.string()).default([]),
  env: z.array(Variable),
  ports: z.array(z.object({ name: z.string(), containerPort: z.int() })),
  readinessProbe: z.object({ httpGet: z.object({ path: z.string(), port: z.string() }) }),
  volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string() })),
});
/** The fields of a Deployment that are needed to run its container without a kubelet. */
export const Deployment = z.object({
  spec: z.object({
    replicas: z.int(),
    template: z.object({
      metadata: z.looseObject({}),
      spec: z.looseObject({
        serviceAccountName: z.string(),
        terminationGracePeriodSeconds: z.int(),
        containers: z.tuple([Container]),
        volumes: z.array(
          z.looseObject({ name: z.string(), configMap: z.object({ name: z.string() }).optional() }),
        ),
      }),
    }),
  }),
});
export type Deployment = z.output<typeof Deployment>;

export interface ContainerOptions {
  /** The working directory of its image, with its programs. */
  readonly image: string;
  readonly deployment: Deployment;
  /** The pod's own address, on this machine. */
  readonly podIp: string;
  /** Returns the data of a ConfigMap. */
  readonly dataOf: (configMap: string) => Promise<Readonly<Record<string, string>>>;
  /** Additional arguments and environment variables, because the container runs outside of the cluster. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The exit of a container. */
export interface Ended {
  readonly code: number | null;
  readonly seconds: number;
}

/**
 * A process with command, arguments, and environment of a Deployment's container, and with the ConfigMaps that it
 * mounts.
 */
export class ContainerProcess {
  readonly #child: ChildProcess;
  readonly #probe: string;
  readonly #graceSeconds: number;
  readonly #dir: string;
  readonly #closed: Promise<unknown>;
  #printed = '';

  private constructor(child: ChildProcess, probe: string, graceSeconds: number, dir: string) {
    this.#child = child;
    this.#probe = probe;
    this.#graceSeconds = graceSeconds;
    this.#dir = dir;
    this.#closed = once(child, 'close');
    const note = (text: string) => {
      this.#printed += text;
    };
    for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', note);
  }

  static async start(options: ContainerOptions): Promise<ContainerProcess> {
    const { image, deployment, podIp, dataOf, args, env: given } = options;
    const { volumes, containers, terminationGracePeriodSeconds } = deployment.spec.template.spec;
    const [{ command, args: own, env, ports, readinessProbe, volumeMounts }] = containers;
    const [program, ...words] = [...command, ...own];
    if (program !== 'node') throw new Error(`The container runs ${program}, and node is what the image has.`);
    const variables: Record<string, string> = {};
    const expanded = (text: string) =>
      text.replace(/\$\((\w+)\)/g, (reference, name: string) => variables[name] ?? reference);
    // Each variable may refer to those before it.
    for (const each of env) variables[each.name] = 'value' in each ? expanded(each.value) : podIp;
    const dir = mkdtempSync(join(tmpdir(), 'taintward-container-'));
    const mounted = new Map<string, string>();
    for (const { name, mountPath } of volumeMounts) {
      const configMap = volumes.find((volume) => volume.name === name)?.configMap?.name;
      if (configMap === undefined) continue;
      for (const [file, text] of Object.entries(await dataOf(configMap))) {
        writeFileSync(join(dir, file), text);
        mounted.set(`${mountPath}/${file}`, join(dir, file));
      }
    }
    const here = (word: string) =>
      [...mounted].reduce((text, [path, file]) => text.replace(path, file), expanded(word));
    const child = spawn(process.execPath, [...words.map(here), ...args], {
      cwd: image,
      env: { ...given, ...variables, NODE_OPTIONS: READ_ONLY },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    process.once('exit', () => child.kill('SIGKILL'));
    const { path, port } = readinessProbe.httpGet;
    const number = ports.find(({ name }) => name === port)?.containerPort;
    return new ContainerProcess(
      child,
      `http://${podIp}:${number}${path}`,
      terminationGracePeriodSeconds,
      dir,
    );
  }

  /** Returns the states of the readiness probe's response, as `prod live`; `undefined`: the container is not ready. */
  async ready(): Promise<readonly string[] | undefined> {
    if (this.#child.exitCode !== null) throw new Error(`The container ended: ${this.#printed}`);
    const answer = await fetch(`${this.#probe}?verbose`).catch(() => undefined);
    if (!answer?.ok) return undefined;
    const states = (await answer.text()).matchAll(/^\[\+\](\S+)\/(\S+) ok$/gm);
    return [...states].map(([, cluster, state]) => `${cluster} ${state}`);
  }

  /** Stops the container as the kubelet does; rejects when it would have to be killed. */
  async stop(): Promise<Ended> {
    const requestedAt = Date.now();
    this.#child.kill('SIGTERM');
    await until('it ends when it is told to', () => this.#child.exitCode !== null, this.#graceSeconds * 1000);
    await this.#closed;
    return { code: this.#child.exitCode, seconds: (Date.now() - requestedAt) / 1000 };
  }

  /** Removes all traces, even of a container that did not start. */
  close(): void {
    this.#child.kill('SIGKILL');
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
