import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const PERIOD_US = 100_000;
const V1 = '/sys/fs/cgroup/cpu';
const V2 = '/sys/fs/cgroup';

/** A control group that allows its processes a share of a core, as a container's limit does. */
export interface CpuQuota {
  /** A process writes its ID into this file to be limited by the quota. */
  readonly joinFile: string;
  /** Removes the group; its processes must have ended. */
  remove(): void;
}

let made = 0;

/**
 * Creates a quota of `cores` cores; `undefined` where control groups cannot be written (it requires root, on Linux).
 */
export function cpuQuota(cores: number): CpuQuota | undefined {
  const isV2 = existsSync(join(V2, 'cgroup.controllers'));
  made += 1;
  const group = join(isV2 ? V2 : V1, `taintward-bench-${process.pid}-${made}`);
  const quotaUs = Math.round(cores * PERIOD_US);
  try {
    if (isV2) writeFileSync(join(V2, 'cgroup.subtree_control'), '+cpu');
    mkdirSync(group);
    if (isV2) {
      writeFileSync(join(group, 'cpu.max'), `${quotaUs} ${PERIOD_US}`);
    } else {
      writeFileSync(join(group, 'cpu.cfs_period_us'), String(PERIOD_US));
      writeFileSync(join(group, 'cpu.cfs_quota_us'), String(quotaUs));
    }
  } catch {
    return undefined;
  }
  return { joinFile: join(group, 'cgroup.procs'), remove: () => rmdirSync(group) };
}
