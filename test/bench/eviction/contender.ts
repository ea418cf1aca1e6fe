import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { currentContext, readKubeconfig } from '#shared/kubernetes/kubeconfig-file.ts';
import { ControllerManager } from '#test/cluster/rig/controller-manager.ts';
import type { ProcessUsage } from '#test/cluster/rig/process-usage.ts';
import { ServiceProcess } from '#test/cluster/rig/service-process.ts';

/** What evicts, in a process of its own that knows its cluster. */
export interface Evictor {
  usage(): ProcessUsage | undefined;
  stop(): Promise<void>;
}

/** Starts something that evicts on the cluster of `KUBECONFIG`; resolves when it knows what is there. */
export type Contender = () => Promise<Evictor>;

/** The service in one process, as `npm start` runs it, without a guard: whole fleets are tainted at once. */
export const ours: Contender = async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'taintward-bench-'));
  const { KUBECONFIG: kubeconfig = '' } = process.env;
  const contexts = [currentContext(readKubeconfig(kubeconfig))];
  const service = await ServiceProcess.start({ kubeconfig, contexts, stateDir });
  return {
    usage: () => service.usage(),
    stop: async () => {
      await service.stop();
      rmSync(stateDir, { recursive: true });
    },
  };
};

/** The controller built into Kubernetes, which may ask the API server for so much a second. */
export const builtIn =
  (requestsPerSecond: number): Contender =>
  () =>
    ControllerManager.evictingAt(requestsPerSecond);

/** What `--kube-api-qps` is by default. */
export const DEFAULT_REQUESTS_PER_SECOND = 20;
/** More than either can use on one machine. */
export const AMPLE_REQUESTS_PER_SECOND = 1_000;

const named = (requestsPerSecond: number) =>
  `built-in, ${requestsPerSecond.toLocaleString('en-US')} requests/s`;

/** What tables call the built-in controller at either limit. */
export const LIMITED = named(DEFAULT_REQUESTS_PER_SECOND);
export const AMPLE = named(AMPLE_REQUESTS_PER_SECOND);
