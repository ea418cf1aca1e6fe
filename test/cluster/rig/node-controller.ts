import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '#test/aws/server-process.ts';

/** A node of which nothing is heard for so long counts as down: 50 unless it is told otherwise. */
const GRACE_SECONDS = 12;

/**
 * The real node controller, on the cluster of `KUBECONFIG`: it taints nodes that give no sign of life. Nothing else of the
 * kube-controller-manager runs, the taint-eviction controller least of all.
 */
export class NodeController {
  readonly #child: ChildProcess;
  readonly #dir: string;
  readonly #stopped: Promise<unknown>;

  /** Throws, so that tests fail and are never skipped, when `KCM_BIN` names no binary. */
  static async start(): Promise<NodeController> {
    const { KCM_BIN, KUBECONFIG } = process.env;
    if (!KCM_BIN)
      throw new Error('KCM_BIN is not set: let it name a kube-controller-manager of Kubernetes 1.36.');
    const dir = mkdtempSync(join(tmpdir(), 'taintward-kcm-'));
    const log = openSync(join(dir, 'log'), 'w');
    const kubeconfigs = ['--kubeconfig', '--authentication-kubeconfig', '--authorization-kubeconfig'];
    const child = spawn(
      KCM_BIN,
      [
        ...kubeconfigs.map((flag) => `${flag}=${KUBECONFIG}`),
        '--controllers=node-lifecycle-controller',
        `--node-monitor-grace-period=${GRACE_SECONDS}s`,
        '--node-monitor-period=1s',
        '--leader-elect=false',
        '--bind-address=127.0.0.1',
        `--secure-port=${await freePort()}`,
        `--cert-dir=${dir}`,
      ],
      { stdio: ['ignore', log, log] },
    );
    return new NodeController(child, dir);
  }

  private constructor(child: ChildProcess, dir: string) {
    this.#child = child;
    this.#dir = dir;
    this.#stopped = once(child, 'exit');
    process.once('exit', () => child.kill('SIGKILL'));
  }

  /** Throws when it ended by itself: nobody taints nodes then. */
  check(): void {
    if (this.#child.exitCode !== null) throw new Error(`The node controller ended: see ${this.#dir}/log.`);
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#stopped;
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
