import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findOwn } from '#shared/files/owner-only.ts';
import { type Taint, taintText } from '#shared/taints/taint.ts';
import { parseTaint, TaintArgumentError } from '#shared/taints/taint-argument.ts';
import type { Clock } from '#shared/time/clock.ts';
import { type ApiServerLog, SIMULATED_CONTEXT, startApiServer, writeKubeconfig } from './api/server.ts';
import { Controllers } from './controllers/controllers.ts';
import type { ControllerLog } from './controllers/reconcile-loop.ts';
import { seedDemoFleet } from './demo-fleet.ts';
import { taintsOf } from './objects/admission.ts';
import type { NodeObject, PodObject } from './objects/kinds.ts';
import { addTaint, parseTaintRemoval, removeTaint } from './objects/node-taints.ts';
import { openStateFile, type StateFileLog } from './objects/state-file.ts';
import { ObjectStore } from './objects/store.ts';

export interface SimulatedClusterOptions {
  readonly clock: Clock;
  /** The directory of the kubeconfig and the cluster's state, for this process alone. It is created if it is missing. */
  readonly dir: string;
  /** Receives failures inside the cluster. */
  readonly log?: StateFileLog & ApiServerLog & ControllerLog;
}

export interface SimulatedNode {
  readonly name: string;
  /** The taints in kubectl's notation. */
  readonly taints: readonly string[];
}

export interface SimulatedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** `undefined` until it is scheduled. */
  readonly node: string | undefined;
  /** `Pending`, `Running` or `Terminating`, unless a client has set another phase. */
  readonly status: string;
}

/** A running cluster that consists of API objects only. */
export interface SimulatedCluster {
  /** The path of a kubeconfig that only its owner can read. */
  readonly kubeconfig: string;
  readonly context: string;
  /** Adds a taint: `key=value:Effect` or `key:Effect`. Replaces the value of an existing taint. Throws one clear sentence. */
  taint(node: string, taint: string): void;
  /** Removes taints: `key-`, `key:Effect-`, or either without the `-`. Throws one clear sentence. */
  untaint(node: string, taint: string): void;
  /** The nodes, ordered by name. */
  nodes(): readonly SimulatedNode[];
  /** The pods, ordered by name. */
  pods(): readonly SimulatedPod[];
  /** Stops the cluster; its state stays in the directory. */
  close(): Promise<void>;
}

/**
 * Starts the simulated cluster of a directory: with the demo's fleet the first time, and with the stored state afterwards.
 * Rejects with `ForeignFileError` when another user owns the directory or its files.
 */
export async function startSimulatedCluster({
  clock,
  dir,
  log,
}: SimulatedClusterOptions): Promise<SimulatedCluster> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  findOwn(dir, 'directory');
  const file = openStateFile(join(dir, 'simulated-cluster.db'), log);
  const { state, save } = file;
  const store = new ObjectStore({ clock, save, ...(state === undefined ? {} : { state }) });
  seedDemoFleet(store);
  const server = await startApiServer(store, log);
  const kubeconfig = join(dir, 'simulated-cluster.kubeconfig');
  writeKubeconfig(kubeconfig, server);
  const controllers = new Controllers(store, log);
  controllers.start();
  return {
    kubeconfig,
    context: SIMULATED_CONTEXT,
    taint(node, text) {
      const taint = parseTaint(text);
      changeTaints(store, node, (taints) => addTaint(taints, taint));
    },
    untaint(node, text) {
      const removal = parseTaintRemoval(text);
      changeTaints(store, node, (taints) => removeTaint(taints, removal));
    },
    nodes: () => store.all('nodes').map(shownNode).sort(byName),
    pods: () => store.all('pods').map(shownPod).sort(byName),
    async close() {
      controllers.stop();
      await server.close();
      file.close();
    },
  };
}

/** The actor of taints set at the prompt, as recorded in a node's `managedFields`. */
const PROMPT_MANAGER = 'prompt';

function changeTaints(
  store: ObjectStore,
  name: string,
  change: (taints: readonly Taint[]) => readonly Taint[],
) {
  const ref = { namespace: '', name };
  if (store.find('nodes', ref) === undefined) {
    const names = store.all('nodes').map(({ metadata }) => metadata.name);
    throw new TaintArgumentError(`Node "${name}" not found. Specify one of: ${names.sort().join(', ')}`);
  }
  const changed = ({ spec, ...node }: NodeObject) => ({
    ...node,
    spec: { ...spec, taints: change(spec.taints ?? []) },
  });
  store.update('nodes', ref, 'main', changed, { manager: PROMPT_MANAGER });
}

const shownNode = (node: NodeObject): SimulatedNode => ({
  name: node.metadata.name,
  taints: taintsOf(node).map(taintText),
});

const shownPod = ({ metadata, spec, status }: PodObject): SimulatedPod => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name,
  uid: metadata.uid,
  node: spec.nodeName,
  status: metadata.deletionTimestamp === undefined ? (status.phase ?? 'Pending') : 'Terminating',
});

const byName = (a: { name: string }, b: { name: string }): number => a.name.localeCompare(b.name);
