import { resolve } from 'node:path';
import * as z from 'zod';
import type { ClusterChoice } from '#shared/engine/clusters/chosen-clusters.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { readOwn, replaceOwn } from '#shared/files/owner-only.ts';

/** File in the state directory with the access to the clusters, for other processes that read them. */
export const REACHED_BY_FILE = 'clusters.json';

/** A kubeconfig context. Absent `kubeconfig`: the files that kubectl reads. */
export type ReachedBy = Readonly<z.infer<typeof reachedBySchema>>;
const reachedBySchema = z.object({ context: z.string(), kubeconfig: z.string().optional() });

/** Writes the file at `path`. Throws `ForeignFileError` if another user owns the existing file. */
export function writeReachedBy(path: string, clusters: ReadonlyMap<ClusterName, ReachedBy>): void {
  replaceOwn(path, `${JSON.stringify(Object.fromEntries(clusters), undefined, 2)}\n`);
}

/** Empty without a file. Throws `ForeignFileError` if another user owns it, and throws if it is invalid. */
export function readReachedBy(path: string): ReadonlyMap<ClusterName, ReachedBy> {
  const text = readOwn(path);
  if (text === undefined) return new Map();
  const found = z.record(z.string(), reachedBySchema).parse(JSON.parse(text));
  return new Map(Object.entries(found).map(([name, by]) => [clusterName(name), by]));
}

export function reachedBy({ contexts, kubeconfig }: ClusterChoice): ReadonlyMap<ClusterName, ReachedBy> {
  const file = kubeconfig === undefined ? {} : { kubeconfig: resolve(kubeconfig) };
  return new Map(contexts.map((context) => [clusterName(context), { context, ...file }] as const));
}
