import type { NodeTally } from '#shared/engine/watch/node-tally.ts';
import { withoutTraits } from '#shared/eviction/gate.ts';
import type { Affected } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Policy, Rules } from '#shared/eviction/policy.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { ENDED_WINDOW_MS, type Store } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClimateName } from './climates.ts';
import type { Hooks } from './fault.ts';
import { instead } from './instead.ts';
import { IDLE_NODE } from './simulated-user.ts';

/** The part of the service that a defect is in. */
export type Area = 'core' | 'adapters' | 'relay' | 'policy';

/** A defect that the service once had, or might have: planted between its parts and their ports. */
export interface PlantedDefect {
  readonly area: Area;
  /** The climate in which the defect shows soonest. */
  readonly climate: ClimateName;
  /** True if clusters have owners there, whose controls apply. */
  readonly governed: boolean;
  /** True if control planes have a stale view there. */
  readonly stale?: true;
  readonly fault: Partial<Hooks>;
}

export const PLANTED_DEFECTS: Readonly<Record<string, PlantedDefect>> = {
  'a node that is called unreachable is dead, whatever its Lease says': {
    area: 'core',
    climate: 'brief',
    governed: false,
    stale: true,
    fault: { api: (api) => instead(api, { getNodeLease: async () => undefined }) },
  },
  'a node that was alive is so for ever': {
    area: 'core',
    climate: 'brief',
    governed: false,
    stale: true,
    fault: {
      api: (api) =>
        instead(api, {
          getNodeLease: async (node) => {
            const lease = await api.getNodeLease(node);
            return lease && { ...lease, renewedAt: lease.asOf };
          },
        }),
    },
  },
  'a pod is judged as it was listed, not as it was marked': {
    area: 'core',
    climate: 'slow',
    governed: false,
    fault: {
      api: (api, { clock }) => {
        const listed = new Map<string, LivePod>();
        return instead(api, {
          podsOnNode: async (node, due) => {
            const pods = await api.podsOnNode(node, due);
            await clock.sleep(20_000);
            for (const pod of pods) listed.set(pod.uid, pod);
            return pods;
          },
          markDisrupted: async (pod, uid, now, allowed) => {
            const { resourceVersion, ...marked } = await api.markDisrupted(pod, uid, now, allowed);
            return { ...marked, ...listed.get(uid), resourceVersion };
          },
        });
      },
    },
  },
  'a delete waits for its turn with the look that it was decided by': {
    area: 'adapters',
    climate: 'brief',
    governed: false,
    fault: {
      api: (api, { clock }) =>
        instead(api, {
          deletePod: async (pod, preconditions) => {
            await clock.sleep(2_000);
            await api.deletePod(pod, preconditions);
          },
        }),
    },
  },
  'a delete names no version of the pod': {
    area: 'adapters',
    climate: 'fair',
    governed: false,
    fault: {
      // Other clients rarely change a pod at that time, so the hook does. A request with the pod's version detects the change.
      api: (api, { clusters }) =>
        instead(api, {
          deletePod: async (pod, { uid }, notAfter) => {
            for (const cluster of clusters) {
              const judged = [...cluster.livePods.values()].find((each) => each.uid === uid);
              if (judged) cluster.changeTolerations(judged, [{ operator: 'Exists' }]);
            }
            await api.deletePod(pod, { uid }, notAfter);
          },
        }),
    },
  },
  'a taint that a relay found counts as one that it saw appear': {
    area: 'relay',
    climate: 'shifting',
    governed: false,
    fault: {
      relayQueue: (queue) => ({
        send: (messages) =>
          queue.send(
            messages.map((message) => ({
              ...message,
              body: message.body.replaceAll('"known":"preexisting"', '"known":"added"'),
            })),
          ),
      }),
    },
  },
  'a delta decides, however old it is': {
    area: 'core',
    climate: 'echoing',
    governed: false,
    fault: {
      handler: (handler, queue, { clock }) => {
        if (queue === 'evictionsDue') return handler;
        return ({ Records }, context) =>
          handler(
            { Records: Records.map((record) => ({ ...record, body: asOf(record.body, clock.now()) })) },
            context,
          );
      },
    },
  },
  'a relay that has lost its lease decides': {
    area: 'relay',
    climate: 'shifting',
    governed: false,
    fault: { leaseEpoch: () => async () => 0 },
  },
  'a load reads everything that ever ended': {
    area: 'adapters',
    climate: 'echoing',
    governed: false,
    fault: {
      store: (store) => ({
        ...storeOf(store),
        load: (ref, _now, only) => store.load(ref, ENDED_WINDOW_MS, only),
      }),
    },
  },
  'a failed try is followed by many': {
    area: 'adapters',
    climate: 'sick',
    governed: false,
    fault: {
      dueQueue: (queue, user) =>
        user === 'evictionsDue'
          ? { send: (messages) => queue.send(Array.from({ length: 8 }, () => messages).flat()) }
          : queue,
    },
  },
  'a timer is armed by nobody': {
    area: 'adapters',
    climate: 'brief',
    governed: false,
    fault: { dueQueue: (queue, user) => (user === 'nodeDeltas' ? { send: async () => [] } : queue) },
  },
  'a delta that was not taken is forgotten': {
    area: 'relay',
    climate: 'brief',
    governed: false,
    fault: {
      relayQueue: (queue) => {
        let sent = 0;
        return { send: (messages) => queue.send(messages.filter(() => ++sent % 4 !== 0)) };
      },
    },
  },
  'a node is told of before its pods are listed': {
    area: 'relay',
    climate: 'shifting',
    governed: false,
    fault: { relayView: (view) => instead(view, { isComplete: () => true }) },
  },
  'a list’s answer replaces what newer events said': {
    area: 'relay',
    climate: 'shifting',
    governed: false,
    fault: {
      // Other clients rarely change a pod at that time, so the hook does.
      relayApi: (api, { clusters }) =>
        instead(api, {
          pods: instead(api.pods, {
            list: async (options) => {
              const { items } = await api.pods.list(options);
              for (const cluster of clusters) {
                const [pod] = items.flatMap(
                  ({ namespace, name }) => cluster.livePods.get(`${namespace}/${name}`) ?? [],
                );
                if (pod && !pod.terminating) cluster.changeTolerations(pod, [{ operator: 'Exists' }]);
              }
              const { resourceVersion } = await api.pods.list(options);
              return { items, resourceVersion };
            },
          }),
        }),
    },
  },
  'a watch that broke goes on with what happens from then on': {
    area: 'relay',
    climate: 'shifting',
    governed: false,
    fault: {
      // Usually nothing happens between the two, so the hook delays the watch.
      relayApi: (api, { clock }) =>
        instead(api, {
          nodes: instead(api.nodes, {
            watch: async function* ({ resourceVersion, ...options }) {
              if (resourceVersion) await clock.sleep(10_000);
              const now = resourceVersion && (await api.nodes.list({ limit: 1, signal: options.signal }));
              yield* api.nodes.watch(now ? { ...options, resourceVersion: now.resourceVersion } : options);
            },
          }),
        }),
    },
  },
  'the pods of a node without taints are listed': {
    area: 'relay',
    climate: 'fair',
    governed: false,
    fault: { relayView: (view) => instead(view, { followed: () => [...view.followed(), IDLE_NODE] }) },
  },
  'holds are ignored': {
    area: 'policy',
    climate: 'brief',
    governed: true,
    fault: { rules: withRules((rules) => ({ ...rules, holds: [] })) },
  },
  'stops are ignored': {
    area: 'policy',
    climate: 'brief',
    governed: true,
    fault: { rules: withRules((rules) => ({ ...rules, stops: [] })) },
  },
  'what the guard holds is evicted': {
    area: 'policy',
    climate: 'dark',
    governed: true,
    fault: { rules: withRules((rules) => ({ ...rules, trips: [] })) },
  },
  'the guard trips one node too late': {
    area: 'policy',
    climate: 'dark',
    governed: true,
    fault: { relayView: counting((counts) => ({ ...counts, nodes: Math.max(0, counts.nodes - 1) })) },
  },
  'what is told does not wait until a trip is written': {
    area: 'policy',
    climate: 'dark',
    governed: true,
    fault: {
      relayGuard: (guard) => instead(guard, { maySend: true }),
      // Usually the write is too fast for the defect to show, so the hook delays it.
      guardBook: (book, { clock }) =>
        instead(book, {
          changeGuard: async (...args) => {
            await clock.sleep(3_000);
            return book.changeGuard(...args);
          },
        }),
    },
  },
  'it is calm for the guard as soon as the first nodes come back': {
    area: 'policy',
    climate: 'dark',
    governed: true,
    fault: {
      relayView: (view) => {
        const most = new Map<number, number>();
        return counting((counts) => {
          const { nodes, outOf } = counts;
          most.set(outOf, Math.max(most.get(outOf) ?? 0, nodes));
          return nodes < (most.get(outOf) ?? 0) ? { ...counts, nodes: 0 } : counts;
        })(view);
      },
    },
  },
  'the guard asks nobody what time it is': {
    area: 'policy',
    climate: 'dark',
    governed: true,
    fault: { relayGuard: (guard) => instead(guard, { review: () => undefined }) },
  },
  'what is excluded by traits that only the pod shows is evicted': {
    area: 'policy',
    climate: 'wide',
    governed: true,
    fault: {
      rules: withRules(withoutTraits),
    },
  },
  'rules that were read once are relied on for ever': {
    area: 'policy',
    climate: 'brief',
    governed: true,
    fault: { rules: keptFor(Infinity) },
  },
  'rules are read when a pass begins, and not again for its deletes': {
    area: 'policy',
    climate: 'wide',
    governed: true,
    // A pass takes this long where a server is slow.
    fault: { rules: keptFor(10_000) },
  },
  'pods are marked in a cluster that is observed': {
    area: 'policy',
    climate: 'brief',
    governed: true,
    fault: {
      api: (api, { clock }) =>
        instead(api, {
          podsOnNode: async (node, due) => {
            const pods = await api.podsOnNode(node, due);
            const names = new Set(due.map(({ namespace, name }) => `${namespace}/${name}`));
            for (const pod of pods) {
              if (pod.disrupted || pod.terminating || !names.has(`${pod.namespace}/${pod.name}`)) continue;
              await api.markDisrupted(pod, pod.uid, clock.now()).catch(() => undefined);
            }
            return pods;
          },
        }),
    },
  },
  'nobody is woken when rules change': {
    area: 'relay',
    climate: 'brief',
    governed: true,
    fault: { relayRuled: () => () => undefined },
  },
  'a cluster’s rate is ignored': {
    area: 'policy',
    climate: 'wide',
    governed: true,
    fault: { rules: withPolicy(({ evictionRate: _rate, ...policy }) => policy) },
  },
  'deletes count from when their permits were taken, not from when they are sent': {
    area: 'policy',
    climate: 'metered',
    governed: true,
    fault: { permits: (permits) => instead(permits, { sent: () => undefined }) },
  },
  'the seconds are ignored for which pods tolerate a taint by policy': {
    area: 'policy',
    climate: 'fair',
    governed: true,
    fault: {
      rules:
        (read) =>
        async (...args) => {
          const { policy, ...rules } = await read(...args);
          return { ...rules, policy: { ...policy, tolerationSecondsOverrides: {} } };
        },
    },
  },
  'budgets are not asked': {
    area: 'adapters',
    climate: 'brief',
    governed: true,
    fault: {
      api: (api) =>
        instead(api, {
          evictPod: async (...args) => {
            await api.deletePod(...args);
            return { kind: 'evicted' };
          },
        }),
    },
  },
};

/** Returns a hook by which a relay's guard counts differently: nodes in the cluster, and nodes in each zone. */
function counting(count: (affected: Affected) => Affected): Hooks['relayView'] {
  return (view) => {
    const { tally } = view;
    const counts: NodeTally['counts'] = (from) => {
      const { cluster, zones, customTaints } = tally.counts(from);
      const inZones = [...zones].map(([zone, affected]) => [zone, count(affected)] as const);
      return { cluster: count(cluster), zones: new Map(inZones), customTaints };
    };
    return instead(view, { tally: instead(tally, { counts }) });
  };
}

/** Returns a hook that changes the rules that are read. */
function withRules(change: (rules: Rules) => Rules): Hooks['rules'] {
  return (read) =>
    async (...args) =>
      change(await read(...args));
}

/** Returns a hook that changes the policy in the rules. */
function withPolicy(change: (policy: Policy) => Policy): Hooks['rules'] {
  return withRules(({ policy, ...rules }) => ({ ...rules, policy: change(policy) }));
}

/** Returns a hook that caches the rules of `evict` for that duration. */
function keptFor(ms: number): Hooks['rules'] {
  return (read, user, { clock }) => {
    if (user !== 'evictionsDue') return read;
    const kept = new Map<ClusterName, { readonly at: EpochMs; readonly rules: Rules }>();
    return async (cluster) => {
      const last = kept.get(cluster);
      if (last && clock.now() - last.at < ms) return last.rules;
      const at = clock.now();
      const rules = await read(cluster);
      kept.set(cluster, { at, rules });
      return rules;
    };
  };
}

const storeOf = (store: Store): Store => ({
  load: (...args) => store.load(...args),
  commit: (...args) => store.commit(...args),
  end: (...args) => store.end(...args),
  taintedNodes: (cluster) => store.taintedNodes(cluster),
});

const asOf = (body: string, now: number) => JSON.stringify({ ...JSON.parse(body), observedAt: now });
