import { readFileSync, writeFileSync } from 'node:fs';
import * as z from 'zod';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { createOwnerOnly } from '#shared/files/owner-only.ts';
import { systemErrorCode } from '#shared/kubernetes/kubeconfig-file.ts';

/** In the state directory: how its process reaches its clusters, for whoever asks them beside it. */
export const REACHED_BY_FILE = 'clusters.json';

/** How an `npm start` reaches a cluster: by a context of a kubeconfig (absent: where kubectl looks). */
export interface ReachedBy {
  readonly context: string;
  readonly kubeconfig?: string | undefined;
}

const schema = z.record(z.string(), z.object({ context: z.string(), kubeconfig: z.string().optional() }));

/** Leaves it in `path`. */
export function writeReachedBy(path: string, clusters: ReadonlyMap<ClusterName, ReachedBy>): void {
  createOwnerOnly(path);
  writeFileSync(path, `${JSON.stringify(Object.fromEntries(clusters), undefined, 2)}\n`);
}

/** What stands in `path`; of no cluster, where nothing does. Throws when it is of no use. */
export function readReachedBy(path: string): ReadonlyMap<ClusterName, ReachedBy> {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return new Map();
    throw error;
  }
  const found = schema.parse(JSON.parse(text));
  return new Map(Object.entries(found).map(([name, by]) => [clusterName(name), by]));
}
