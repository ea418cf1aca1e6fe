import { evictNode } from '#shared/engine/evict/evict-node.ts';
import { clusterName, type NodeRef, nodeName } from '#shared/eviction/identity.ts';
import { plan } from '#shared/eviction/plan.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { RequestAccess } from '#shared/kubernetes/http/connection.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { enforced } from '#test/world/enforced-rules.ts';
import { NO_METRICS } from '#test/world/no-metrics.ts';
import type { OtherHistory } from './history-kinds.ts';
import { MATCHING } from './scene.ts';
import { SeededRandom } from './seeded-random.ts';
import { PROTOCOLS, type ServerManners, SocketServer } from './socket-server.ts';
import { Story } from './story.ts';

const CLUSTER = clusterName('c1');
/** The number of passes after which a remaining pod counts as never evicted. */
const MAX_PASSES = 30;

/** Returns the API of the cluster: that of the real client, or of one with a planted defect. */
export type Reach = (access: RequestAccess, clock: Clock) => KubernetesApi;

export const REAL: Reach = (access, clock) =>
  new RestApi({ host: access.server.host, requestOptions: async () => access }, clock, 'sockets');

/** The time of this machine, except that idle waits are skipped. */
class SkippingClock implements Clock {
  #skippedMs = 0;

  now(): EpochMs {
    return Date.now() + this.#skippedMs;
  }

  skipTo(at: EpochMs): void {
    this.#skippedMs += Math.max(0, at - this.now());
  }
}

/**
 * Plays a history on real sockets: the real client evicts the pods of some nodes by an API server that is slow and cuts
 * connections. Only counts are judged, because they hold on a slow machine. Each pod is evicted by one delete, and the client
 * does not hang up on a sent delete.
 */
export async function playSockets(seed: number, reach: Reach = REAL): Promise<OtherHistory> {
  const random = new SeededRandom(seed);
  const manners: ServerManners = {
    protocol: PROTOCOLS[seed % PROTOCOLS.length] ?? PROTOCOLS[0],
    deleteMs: random.pick([
      [0, 40],
      [100, 400],
      [300, 1_000],
    ]),
    callMs: random.pick([
      [0, 20],
      [0, 120],
    ]),
    cancels: random.chance(0.5),
    doesFirst: random.chance(0.3),
    cuts: random.pick([0, 0, 0.05]),
  };
  const clock = new SkippingClock();
  const story = new Story(clock);
  story.add('server', { ...manners });
  const server = new SocketServer(seed, manners);
  const access: RequestAccess = { server: await server.listen(), headers: {}, rejectUnauthorized: false };
  const api = reach(access, clock);
  const store = new SqliteStore({ path: ':memory:' });
  try {
    const nodes = Array.from({ length: random.between(1, 3) }, (_, index) => nodeName(`n${index + 1}`));
    const refs = nodes.map((node): NodeRef => ({ cluster: CLUSTER, node }));
    for (const ref of refs) {
      const pods = Array.from({ length: random.between(1, 6) }, (_, index) => `${ref.node}-p${index + 1}`);
      for (const name of pods) server.addPod(ref.node, name);
      await schedule(store, ref, pods, clock.now());
    }
    await Promise.all(refs.map((ref) => evictAll(ref, { api, clock, store, story, server })));
    return { ...judge(server, story), story: story.lines };
  } finally {
    api.close();
    server.close();
    store.close();
  }
}

/** Schedules pods as `deltas` does with a relay's report: the pods of a node are due now. */
async function schedule(
  store: SqliteStore,
  ref: NodeRef,
  names: readonly string[],
  now: EpochMs,
): Promise<void> {
  const before = await store.load(ref, now);
  const { node, decisions } = plan(
    before,
    {
      kind: 'node',
      ref,
      version: { epoch: 1, sequence: 1 },
      observedAt: now - 1_000,
      taints: [{ key: 'a', effect: 'NoExecute', known: 'added', seenAt: now - 1_000 }],
      pods: names.map((name) => ({
        uid: `uid-${name}` as never,
        namespace: 'default',
        name,
        podSince: now - 60_000,
        tolerations: [],
      })),
      wake: false,
    },
    enforced(MATCHING),
    { now },
  );
  const records = decisions.flatMap((each) => (each.kind === 'schedule' ? [each.record] : []));
  if (!node || records.length !== names.length) throw new Error('nothing was scheduled');
  await store.commit(ref, before.revision, { node, schedule: records, end: [], live: true }, now);
}

interface Stage {
  readonly api: KubernetesApi;
  readonly clock: SkippingClock;
  readonly store: SqliteStore;
  readonly story: Story;
  readonly server: SocketServer;
}

/** Runs passes over a node as often as requested, until nothing is due there. */
async function evictAll(ref: NodeRef, { api, clock, store, story, server }: Stage): Promise<void> {
  for (let passes = 1; passes <= MAX_PASSES; passes++) {
    const armed: EpochMs[] = [];
    const again = await evictNode(ref, {
      store,
      clock,
      log: story.log,
      metrics: NO_METRICS,
      rules: async () => enforced(MATCHING),
      permits: { take: async () => [] },
      clusters: { api: async () => api },
      timers: {
        arm: async (_ref: NodeRef, moments: readonly EpochMs[]) => {
          armed.push(...moments);
        },
      },
      dueQueue: { send: async () => [] },
    } as never);
    const { scheduled, node } = await store.load(ref, clock.now());
    if (scheduled.size === 0) return;
    // A failure is found soon enough by this check.
    if ([...server.pods.values()].some(({ hungUp }) => hungUp > 0)) return;
    const nextAt = Math.min(node?.retry?.nextTryAt ?? Infinity, ...armed, clock.now() + 360_000);
    story.add('waits', { node: ref.node, again: again !== undefined, nextAt });
    clock.skipTo(nextAt);
  }
}

function judge(server: SocketServer, story: Story) {
  const faults: string[] = [];
  const accuse = (what: string) => {
    faults.push(what);
    story.add('broken', { what });
  };
  const pods = [...server.pods.values()];
  for (const { name, deletes, requests, cut, refused, hungUp } of pods) {
    story.add('pod.counts', { name, deletes, requests, cut, refused, hungUp });
    if (hungUp > 0) accuse(`we hung up on ${hungUp} deletes of ${name}`);
    else if (deletes === 0) accuse(`${name} never went`);
    if (deletes > 1) accuse(`${name} was deleted ${deletes} times`);
    if (requests > 1 + cut + refused)
      accuse(`${name} was to be deleted ${requests} times, and the server cut ${cut}`);
  }
  const sum = (of: (pod: (typeof pods)[number]) => number) => pods.reduce((total, pod) => total + of(pod), 0);
  const tried = {
    'pods deleted': sum(({ deletes }) => deletes),
    'deletes cut by the server': sum(({ cut }) => cut),
  };
  return { faults, tried };
}
