import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { processUsage } from '#test/cluster/rig/process-usage.ts';
import { type CpuQuota, cpuQuota } from './cpu-quota.ts';

/** The machine does not permit limiting a process to a share of a core. */
export class NoQuotaError extends Error {
  override readonly name = 'NoQuotaError';
}

export interface ProcessOptions {
  /** The number of cores that it may use; absent: all. */
  readonly cores?: number;
  /** A replacement for /etc/resolv.conf. Requires root. */
  readonly resolvConf?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** A process whose CPU and memory are read from outside. It never outlives this one. */
export class MeasuredProcess {
  readonly child: ChildProcess;
  readonly startedAt = Date.now();
  readonly #quota: CpuQuota | undefined;
  readonly #kill = () => this.child.kill('SIGKILL');

  /** Throws `NoQuotaError`. */
  constructor(command: string, args: readonly string[], options: ProcessOptions = {}) {
    const { cores, resolvConf, env } = options;
    this.#quota = cores === undefined ? undefined : cpuQuota(cores);
    if (cores !== undefined && this.#quota === undefined) {
      throw new NoQuotaError(`This needs a CPU quota of ${cores} cores: run it as root on Linux.`);
    }
    const steps = [
      ...(this.#quota ? [`echo $$ > ${this.#quota.joinFile}`] : []),
      ...(resolvConf === undefined ? [] : [`mount --bind ${resolvConf} /etc/resolv.conf`]),
      'exec "$@"',
    ];
    const script = ['sh', '-ec', steps.join('\n'), 'sh', command, ...args];
    const [program = 'sh', ...rest] = resolvConf === undefined ? script : ['unshare', '-m', ...script];
    this.child = spawn(program, rest, {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      env: { ...process.env, ...env },
    });
    process.once('exit', this.#kill);
  }

  get ended(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** User and system time since the start, in seconds; NaN when it has ended. */
  get cpuSeconds(): number {
    return processUsage(this.child.pid)?.cpuSeconds ?? Number.NaN;
  }

  /** Resident memory in MiB; NaN when it has ended. */
  get rssMb(): number {
    return processUsage(this.child.pid)?.residentMiB ?? Number.NaN;
  }

  /** The peak resident memory in MiB. */
  get peakMb(): number {
    return processUsage(this.child.pid)?.peakMiB ?? Number.NaN;
  }

  /** Kills the process, as the kernel does when memory is short; resolves when it has ended. */
  async kill(): Promise<void> {
    process.off('exit', this.#kill);
    if (!this.ended) {
      const exit = once(this.child, 'exit');
      this.child.kill('SIGKILL');
      await exit;
    }
    this.#quota?.remove();
  }
}
