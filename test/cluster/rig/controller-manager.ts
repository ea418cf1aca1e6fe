import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { freePort } from '#test/aws/server-process.ts';
import { type ProcessUsage, processUsage } from './process-usage.ts';
import type { ClusterVariable } from './test-cluster.ts';
import { until } from './until.ts';

/** The default of `--kube-api-qps`. The built-in controller sends three requests for each pod that it evicts. */
export const DEFAULT_REQUESTS_PER_SECOND = 20;
const DELETIONS = 'taint_eviction_controller_pod_deletions_total';
/** Seconds without a heartbeat after which a node counts as down. The default of Kubernetes is 50. */
const GRACE_SECONDS = 15;
/** Seconds between two looks at the nodes. The default of Kubernetes is 5. */
const MONITOR_SECONDS = 1;
/** Nodes per second and zone that get the NoExecute taint; the next attempt at the same node waits as long. The default is 0.1. */
const EVICTION_RATE = 1;
/** It starts at once, whoever was the leader before. */
const LONE = ['--leader-elect=false'];

/** The controllers that create a pod in place of an evicted one, and count the disruptions that budgets allow. */
const REPLACING = ['deployment-controller', 'replicaset-controller', 'disruption-controller'] as const;

/** The controllers of all kinds of workloads. */
const OF_WORKLOADS = [
  'deployment-controller',
  'replicaset-controller',
  'statefulset-controller',
  'daemonset-controller',
  'job-controller',
] as const;

type Controller =
  | 'node-lifecycle-controller'
  | 'taint-eviction-controller'
  | (typeof OF_WORKLOADS)[number]
  | (typeof REPLACING)[number];

/**
 * The real kube-controller-manager, with some controllers, at their defaults, except that it notices sooner what becomes
 * of nodes.
 */
export class ControllerManager {
  readonly #child: ChildProcess;
  readonly #port: number;
  readonly #dir: string;

  private constructor(child: ChildProcess, port: number, dir: string) {
    this.#child = child;
    this.#port = port;
    this.#dir = dir;
  }

  /**
   * Starts the node lifecycle controller, alone or with others, on the cluster of `KUBECONFIG`. When `KCM_BIN` names no
   * binary, it throws, so that tests fail and are never skipped.
   */
  static start(
    ...controllers: readonly ['node-lifecycle-controller', ...Controller[]]
  ): Promise<ControllerManager> {
    return ControllerManager.#start(controllers, LONE);
  }

  /**
   * Starts the controllers that replace evicted pods, on the cluster that an environment variable names. Where the
   * cluster has its own, these stand by: two of a kind would create each pod twice.
   */
  static replacing(variable: ClusterVariable): Promise<ControllerManager> {
    const flags = ['--kube-api-qps=200', '--kube-api-burst=300', '--concurrent-replicaset-syncs=10'];
    return ControllerManager.#start(REPLACING, ['--leader-elect=true', ...flags], variable);
  }

  /** Starts the controllers of all workloads. Where the cluster has its own, these stand by. */
  static ofWorkloads(): Promise<ControllerManager> {
    return ControllerManager.#start(OF_WORKLOADS, ['--leader-elect=true', '--kube-api-qps=200']);
  }

  /**
   * Starts the taint-eviction controller alone, limited to `requestsPerSecond` requests to the API server (default:
   * 20). The idle daemonset controller creates the index of pods by node. Without that index the taint-eviction
   * controller lists no pods of a node: it evicts only the pods whose events arrive after the taint.
   */
  static evictingAt(requestsPerSecond: number): Promise<ControllerManager> {
    // The burst is 1.5 times the rate, as it is for the defaults.
    const burst = Math.ceil(requestsPerSecond * 1.5);
    return ControllerManager.#start(
      ['taint-eviction-controller', 'daemonset-controller'],
      [...LONE, `--kube-api-qps=${requestsPerSecond}`, `--kube-api-burst=${burst}`],
    );
  }

  static async #start(
    controllers: readonly Controller[],
    flags: readonly string[],
    variable: ClusterVariable = 'KUBECONFIG',
  ): Promise<ControllerManager> {
    const { KCM_BIN, [variable]: kubeconfig = '' } = process.env;
    if (!KCM_BIN)
      throw new Error(
        'KCM_BIN is not set: let it name a kube-controller-manager of the API server’s version.',
      );
    const port = await freePort();
    const dir = mkdtempSync(join(tmpdir(), 'taintward-kcm-'));
    const log = openSync(join(dir, 'log'), 'w');
    const child = spawn(
      KCM_BIN,
      [
        ...['--kubeconfig', '--authentication-kubeconfig', '--authorization-kubeconfig'].map(
          (flag) => `${flag}=${kubeconfig}`,
        ),
        `--controllers=${controllers.join(',')}`,
        `--node-monitor-grace-period=${GRACE_SECONDS}s`,
        `--node-monitor-period=${MONITOR_SECONDS}s`,
        `--node-eviction-rate=${EVICTION_RATE}`,
        '--bind-address=127.0.0.1',
        `--secure-port=${port}`,
        `--cert-dir=${dir}`,
        '--authorization-always-allow-paths=/healthz,/metrics',
        ...flags,
      ],
      { stdio: ['ignore', log, log] },
    );
    const manager = new ControllerManager(child, port, dir);
    const kill = () => child.kill('SIGKILL');
    process.once('exit', kill);
    child.once('exit', () => process.off('exit', kill));
    await until('the controller manager is up', async () => {
      if (child.exitCode !== null) throw new Error(`The controller manager ended early: see ${dir}/log.`);
      if ((await manager.#get('/healthz').catch(() => '')) !== 'ok') return false;
      // `/healthz` succeeds before the controllers have started.
      return (
        !controllers.includes('taint-eviction-controller') ||
        (await manager.#get('/metrics')).includes(DELETIONS)
      );
    });
    return manager;
  }

  /** Returns the number of pods that the built-in taint-eviction controller has deleted. */
  async deletions(): Promise<number> {
    const metrics = await this.#get('/metrics');
    const line = metrics.split('\n').find((each) => each.startsWith(`${DELETIONS} `));
    if (line === undefined) throw new Error(`The controller manager has no metric ${DELETIONS}.`);
    return Number(line.slice(DELETIONS.length));
  }

  /**
   * Waits until the built-in controller has deleted `pods` pods; throws when it has deleted more. It counts a pod when
   * the API server has answered, which is after watchers saw the deletion.
   */
  async untilDeleted(pods: number): Promise<void> {
    const what = `the built-in controller counts ${pods} deletions`;
    await until(what, async () => (await this.deletions()) >= pods);
    assert.equal(await this.deletions(), pods, what);
  }

  /** Returns the process's resource usage so far; `undefined` where there is no /proc. */
  usage(): ProcessUsage | undefined {
    return processUsage(this.#child.pid);
  }

  /** Throws when the process ended by itself. */
  check(): void {
    if (this.#child.exitCode !== null) throw new Error(`The controller manager ended: see ${this.#dir}/log.`);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      this.#child.kill('SIGKILL');
      await once(this.#child, 'exit');
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** The server's certificate is self-signed. */
  async #get(path: string): Promise<string> {
    const request = https.get({ host: '127.0.0.1', port: this.#port, path, rejectUnauthorized: false });
    const [response] = await once(request, 'response');
    return text(response);
  }
}
