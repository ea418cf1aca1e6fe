import { resolve } from 'node:path';
import * as z from 'zod';
import type { ClusterChoice } from '#shared/engine/clusters/chosen-clusters.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { readOwn, replaceOwn } from '#shared/files/owner-only.ts';

/** In the state directory: how its process reaches its clusters, for whoever asks them beside it. */
export const REACHED_BY_FILE = 'clusters.json';

/** How an `npm start` reaches a cluster: by a context of a kubeconfig (absent: where kubectl looks). */
export interface ReachedBy {
  readonly context: string;
  readonly kubeconfig?: string | undefined;
}

const schema = z.record(z.string(), z.object({ context: z.string(), kubeconfig: z.string().optional() }));

/** Leaves it in `path`. Throws `ForeignFileError` when somebody else's file stands there. */
export function writeReachedBy(path: string, clusters: ReadonlyMap<ClusterName, ReachedBy>): void {
  replaceOwn(path, `${JSON.stringify(Object.fromEntries(clusters), undefined, 2)}\n`);
}

/**
 * What stands in `path`; of no cluster, where nothing does. Throws `ForeignFileError` when it is somebody else's, and when it is of no
 * use.
 */
export function readReachedBy(path: string): ReadonlyMap<ClusterName, ReachedBy> {
  const text = readOwn(path);
  if (text === undefined) return new Map();
  const found = schema.parse(JSON.parse(text));
  return new Map(Object.entries(found).map(([name, by]) => [clusterName(name), by]));
}

/** How each of them is reached, for others than this process. */
export function reachedBy({ contexts, kubeconfig }: ClusterChoice): ReadonlyMap<ClusterName, ReachedBy> {
  const file = kubeconfig === undefined ? {} : { kubeconfig: resolve(kubeconfig) };
  return new Map(contexts.map((context) => [clusterName(context), { context, ...file }] as const));
}
