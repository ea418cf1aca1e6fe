import { readFileSync } from 'node:fs';

/** A process's resource usage since its start. Memory is resident, in MiB. */
export interface ProcessUsage {
  readonly residentMiB: number;
  /** The peak resident memory. */
  readonly peakMiB: number;
  readonly cpuSeconds: number;
}

/** Reads a process's usage from outside; `undefined` where there is no /proc, and for a process that has ended. */
export function processUsage(pid: number | undefined): ProcessUsage | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const mib = (field: string) =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) / 1024;
    // Fields are counted after the command in parentheses: utime and stime are the fields 14 and 15, in ticks of 10 ms.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const cpuSeconds = (Number(fields[11]) + Number(fields[12])) / 100;
    return { residentMiB: mib('VmRSS'), peakMiB: mib('VmHWM'), cpuSeconds };
  } catch {
    return undefined;
  }
}
