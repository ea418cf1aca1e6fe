import { setTimeout as delay } from 'node:timers/promises';
import type { SentDelta } from './relay-questions.ts';
import { nodeNameOf } from './server/node-object.ts';
import type { SyntheticServer } from './synthetic-server.ts';

/** The number of nodes that are tainted concurrently. */
const MAX_CONCURRENT_TAINTED = 4;

/** The times at which nodes of a cluster were tainted, by name (epoch ms). */
export type Tainted = ReadonlyMap<string, number>;

/** Taints one node after the other while `goOn` returns true, and soon removes each taint again. */
export async function taintInTurn(
  server: SyntheticServer,
  { cluster, everyMs, goOn }: { cluster: string; everyMs: number; goOn: (done: number) => boolean },
): Promise<Tainted> {
  const tainted = new Map<string, number>();
  for (let node = 0; goOn(node); node += 1) {
    const at = await server.command({ kind: 'taint', cluster, nodes: [node] });
    tainted.set(nodeNameOf(node), at);
    if (node >= MAX_CONCURRENT_TAINTED) {
      await server.command({ kind: 'untaint', cluster, nodes: [node - MAX_CONCURRENT_TAINTED] });
    }
    await delay(everyMs);
  }
  return tainted;
}

/**
 * Returns the milliseconds from each taint to the first delta that contains it with all pods of the node; absent:
 * never.
 */
export function delays(
  tainted: Tainted,
  deltas: readonly SentDelta[],
  { cluster, pods }: { readonly cluster: string; readonly pods: number },
): readonly (number | undefined)[] {
  const first = new Map<string, number>();
  for (const delta of deltas) {
    const right = delta.kind === 'node' && delta.taints > 0 && delta.pods >= pods;
    if (delta.cluster === cluster && right && !first.has(delta.node)) first.set(delta.node, delta.at);
  }
  return [...tainted].map(([node, at]) => {
    const sentAt = first.get(node);
    return sentAt === undefined ? undefined : sentAt - at;
  });
}
