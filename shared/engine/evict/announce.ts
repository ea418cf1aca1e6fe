import { UnknownClusterError } from '#shared/access/registered-clusters.ts';
import type { News } from '#shared/engine/news.ts';
import type { NodeRef } from '#shared/eviction/identity.ts';
import { countingDown } from './countdown-events.ts';
import { cancellingDeletion, logLost, postEvents } from './events.ts';
import type { EvictDeps } from './evict-node.ts';

/**
 * Posts the Events of decisions on a node. For a cluster that is no longer managed, the Events are logged as dropped.
 */
export async function announce(
  { cluster }: NodeRef,
  { cancelled, countdowns }: News,
  deps: Pick<EvictDeps, 'clusters' | 'clock' | 'log' | 'rules'>,
): Promise<void> {
  const { policy } = countdowns.length > 0 ? await deps.rules(cluster) : {};
  const events = [
    ...cancelled.flatMap(({ version, pods }) => pods.map((pod) => cancellingDeletion(pod, version))),
    ...countdowns.map((pod) => countingDown(pod, policy?.mode === 'observe')),
  ];
  try {
    await postEvents(await deps.clusters.api(cluster), events, deps);
  } catch (error) {
    if (!(error instanceof UnknownClusterError)) throw error;
    for (const event of events) logLost(event, error, deps.log);
  }
}
