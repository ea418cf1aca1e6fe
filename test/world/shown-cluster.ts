import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import type { LiveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { DrivenClock } from './driven-clock.ts';
import { FakeCluster } from './fake-cluster.ts';

/** The clock of a shown cluster is this far ahead, so that a wrong sign or a forgotten correction is noticed. */
export const SHOWN_SKEW_MS = 4_000;

/** The objects and collections that an API server shows, by path. Selectors select nothing here. */
export type Shown = Readonly<Record<string, object | readonly object[]>>;

/**
 * Returns a cluster that shows these objects only, and that allows all requests except those that `refused` matches.
 */
export function shownCluster(
  shown: Shown,
  now: number,
  refused: (path: string) => boolean = () => false,
): LiveCluster {
  const api = Object.assign(new FakeCluster(new DrivenClock(now)), {
    skewMs: SHOWN_SKEW_MS,
    host: 'shown',
    allowed: async () => true,
  });
  const at = (path: string) => {
    if (refused(path)) throw new ApiError(`Cannot get ${path}: it is forbidden.`, 403, 'Forbidden');
    return shown[path];
  };
  const objects: Pick<ClusterObjects, 'get' | 'list' | 'text' | 'tryCreate' | 'skewMs'> = {
    skewMs: SHOWN_SKEW_MS,
    get: async (path) => at(path) as Readonly<Record<string, unknown>> | undefined,
    async *list(path) {
      const items = at(path) ?? [];
      if (Array.isArray(items)) yield* items;
    },
    tryCreate: async () => ({}),
    async text(path) {
      throw new ApiError(`Cannot get ${path}: there is none.`, 404, 'NotFound');
    },
  };
  return { api, objects: objects as ClusterObjects, close: () => undefined };
}

/** Returns the objects that show the state of the built-in controller: the flags of a control plane. */
export const controllerManager = (state: 'on' | 'off'): Shown => ({
  '/api/v1/namespaces/kube-system/pods': [
    {
      spec: {
        containers: [{ command: [`--controllers=*${state === 'on' ? '' : ',-taint-eviction-controller'}`] }],
      },
    },
  ],
});
