import type { TestContext } from 'node:test';
import type { KubernetesApi, Resource } from '#shared/kubernetes/api.ts';
import { clusterRelay, inSqlite, SECOND, taintedCluster } from '#test/unit/engine/watch/relay-world.ts';
import { listOf } from '#test/unit/engine/watch/scripted-resource.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { PushedRules } from '#test/world/pushed-rules.ts';

/**
 * Events in an audit log by the policy of EKS: one for each request, and two for a watch, at its start and its end. The
 * policy leaves out `/version`, and `RequestReceived` everywhere.
 */
const EVENTS: Readonly<Record<string, number>> = {
  ping: 0,
  /** One review of all rules, if they grant everything. */
  lacking: 1,
  allowed: 1,
  /** The namespace `kube-system`, and the first nodes. */
  uids: 2,
  getTakeover: 1,
  'nodes.watch': 2,
  'pods.watch': 2,
  'pods.list': 1,
};

/**
 * A review takes 2.65 KB on a real API server (Kubernetes 1.36, by that policy), and other requests 1 KB. On EKS, each also
 * names the session of the role.
 */
export const EVENT_KB = 3;

/**
 * Returns the audit events per minute that a relay causes in a quiet cluster in an hour, by call. `tainted`: one node has a
 * taint, and nothing is due.
 */
export async function quietHour(
  context: TestContext,
  { tainted }: { readonly tainted: boolean },
): Promise<Readonly<Record<string, number>>> {
  context.mock.method(Math, 'random', () => 0.5);
  const time = driveTimers(context);
  const cluster = taintedCluster();
  if (!tainted) cluster.nodes.lists = [listOf()];
  const counts: Record<string, number> = {};
  const counted = <T extends object>(target: T, prefix = ''): T =>
    new Proxy(target, {
      get(_, key) {
        const value: unknown = Reflect.get(target, key, target);
        if (key === 'nodes' || key === 'pods') return counted(value as Resource<never>, `${key}.`);
        if (typeof value !== 'function') return value;
        return (...given: readonly unknown[]) => {
          const call = `${prefix}${String(key)}`;
          counts[call] = (counts[call] ?? 0) + (EVENTS[call] ?? Number.NaN);
          return value.apply(target, given);
        };
      },
    });
  const api: KubernetesApi = counted(cluster);
  const { relay } = clusterRelay(context, api, { ...inSqlite(), rules: new PushedRules() });
  relay.start();
  await time.pass(60 * SECOND);
  for (const call of Object.keys(counts)) counts[call] = 0;
  await time.pass(3600 * SECOND);
  return Object.fromEntries(Object.entries(counts).map(([call, count]) => [call, count / 60]));
}
