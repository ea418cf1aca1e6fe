import pMap from 'p-map';
import type { KubernetesApi, PodEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';

const PARALLEL_EVENTS = 16;
const TRIES = 3;

/**
 * Posts Events, each a few times; a server that does not answer at all is not asked again, because every time-out
 * would hold the node's next evictions up. Never rejects: an Event is a courtesy.
 */
export async function postEvents(
  api: KubernetesApi,
  events: readonly PodEvent[],
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<void> {
  let silent: unknown;
  const lose = ({ pod, message }: PodEvent, reason: unknown) =>
    log.warn('event.lost', { namespace: pod.namespace, pod: pod.name, message, reason });
  const post = async (event: PodEvent): Promise<void> => {
    for (let tries = 1; !silent; tries++) {
      try {
        return await api.createEvent(event, clock.now());
      } catch (error) {
        if (error instanceof ApiError && error.status === 0) silent = error;
        else if (tries === TRIES) return lose(event, error);
      }
    }
    lose(event, silent);
  };
  await pMap(events, post, { concurrency: PARALLEL_EVENTS });
}
