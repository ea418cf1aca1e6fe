import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type CpuQuota, cpuQuota } from './cpu-quota.ts';

const MB = 2 ** 20;
const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));

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
    const stat = this.#proc('stat');
    // Fields are counted after the name, which may contain any characters: fields 14 and 15 of proc(5).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  }

  /** Resident memory in MB (2^20 bytes); NaN when it has ended. */
  get rssMb(): number {
    return this.#memoryMb('VmRSS');
  }

  /** The peak resident memory in MB. */
  get peakMb(): number {
    return this.#memoryMb('VmHWM');
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

  #memoryMb(field: string): number {
    const kb = new RegExp(`${field}:\\s+(\\d+) kB`).exec(this.#proc('status'))?.[1];
    return (Number(kb ?? Number.NaN) * 1024) / MB;
  }

  #proc(file: string): string {
    try {
      return readFileSync(`/proc/${this.child.pid}/${file}`, 'utf8');
    } catch {
      return '';
    }
  }
}
