import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { bundleProgram, PROJECT_DIR, programFile } from '#deploy/build/bundle.ts';
import { currentContext, readKubeconfig } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { IMAGE_ENV } from '#test/bench/image-env.ts';
import { Deployment } from '#test/chart/container.ts';
import { ControllerManager, DEFAULT_REQUESTS_PER_SECOND } from '#test/cluster/rig/controller-manager.ts';
import type { ProcessUsage } from '#test/cluster/rig/process-usage.ts';
import { type ServiceOptions, ServiceProcess } from '#test/cluster/rig/service-process.ts';

/** An evicting process that has synchronized with its cluster. */
export interface Evictor {
  usage(): ProcessUsage | undefined;
  stop(): Promise<void>;
}

/** Starts an evicting process on the cluster of `KUBECONFIG`; resolves when the process has synchronized. */
export type Contender = () => Promise<Evictor>;

let image: Pick<ServiceOptions, 'program' | 'env'> | undefined;

/** Returns the program of the image, as the chart's Deployment runs it. */
export function asInImage(): Pick<ServiceOptions, 'program' | 'env'> {
  if (image) return image;
  const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-'));
  process.once('exit', () => rmSync(dir, { recursive: true }));
  bundleProgram('service', dir);
  const manifest = readFileSync(join(PROJECT_DIR, 'deploy/in-cluster/deployment.yaml'), 'utf8');
  const [{ command }] = Deployment.parse(load(manifest)).spec.template.spec.containers;
  const [, ...flags] = command.slice(0, -1);
  image = { program: [...flags, join(dir, programFile('service'))], env: IMAGE_ENV };
  return image;
}

/** The service in one process, without a guard, because whole fleets are tainted simultaneously. */
export const ours: Contender = async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'taintward-bench-'));
  const { KUBECONFIG: kubeconfig = '' } = process.env;
  const contexts = [currentContext(readKubeconfig(kubeconfig))];
  const service = await ServiceProcess.start({ kubeconfig, contexts, stateDir, ...asInImage() });
  return {
    usage: () => service.usage(),
    stop: async () => {
      await service.stop();
      rmSync(stateDir, { recursive: true });
    },
  };
};

/** The controller built into Kubernetes, limited to this many requests to the API server per second. */
export const builtIn =
  (requestsPerSecond: number): Contender =>
  () =>
    ControllerManager.evictingAt(requestsPerSecond);

/** More than either contender can use on one machine. */
export const AMPLE_REQUESTS_PER_SECOND = 1_000;

const named = (requestsPerSecond: number) =>
  `built-in, ${requestsPerSecond.toLocaleString('en-US')} requests/s`;

/** The tables' names of the built-in controller at either limit. */
export const LIMITED = named(DEFAULT_REQUESTS_PER_SECOND);
export const AMPLE = named(AMPLE_REQUESTS_PER_SECOND);
