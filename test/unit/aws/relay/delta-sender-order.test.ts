import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Registry } from 'prom-client';
import { parseDelta } from '#shared/aws/delta-message.ts';
import { DeltaSender } from '#shared/aws/relay/delta-sender.ts';
import { ClusterView, type Subject } from '#shared/engine/watch/cluster-view.ts';
import type { Outbox } from '#shared/engine/watch/ports.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { compareVersions, type Delta, onlyPod, type PodFacts, type Version } from '#shared/eviction/facts.ts';
import { type ClusterName, clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import {
  type OutgoingMessage,
  QueueError,
  type QueueSender,
  type SendFailure,
} from '#shared/state/sender.ts';
import { pause } from '#shared/time/pause.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { liveNode, livePod } from '../../engine/watch/live-objects.ts';
import { OrderedQueue } from './ordered-queue.ts';

const CLUSTERS = ['c1', 'c2', 'c3'] as const;
const NODES = ['n1', 'n2', 'n3', 'n4'] as const;

/** The result of a call: `lost`: nothing arrived; `unanswered`: everything arrived, but the answer was lost. */
type Outcome = 'taken' | 'lost' | 'unanswered' | { readonly refused: readonly number[] };
interface Fate {
  readonly ms: number;
  /** Messages arrive when the call begins (`true`), or when it ends. */
  readonly atOnce: boolean;
  readonly outcome: Outcome;
}

const forecast: fc.Arbitrary<Fate> = fc.record({
  ms: fc.integer({ min: 0, max: 400 }),
  atOnce: fc.boolean(),
  outcome: fc.oneof(
    { weight: 4, arbitrary: fc.constant<Outcome>('taken') },
    fc.constantFrom<Outcome>('lost', 'unanswered'),
    fc.record({ refused: fc.array(fc.nat(9), { minLength: 1, maxLength: 4 }) }),
  ),
});

const step = fc.record({
  cluster: fc.constantFrom(...CLUSTERS),
  node: fc.constantFrom(...NODES),
  pod: fc.nat(14),
  what: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom('taint', 'untaint', 'pod comes', 'pod changes', 'pod goes') },
    fc.constantFrom('all again', 'falls silent', 'speaks again', 'is taken anew'),
  ),
  /** Most steps happen at the same time. */
  thenMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 500 })),
});

/** A queue with a scripted result for each call, which reports messages that are forbidden or out of order. */
class FatefulQueue implements QueueSender {
  readonly #forecasts: Iterator<Fate>;
  readonly #reader: Reader;
  readonly #silent: ReadonlySet<string>;
  readonly #underWay = new Set<string>();
  readonly #newest = new Map<string, Version>();
  readonly faults: string[] = [];

  constructor(forecasts: readonly Fate[], silent: ReadonlySet<string>, reader: Reader) {
    this.#forecasts = forecasts.values();
    this.#silent = silent;
    this.#reader = reader;
  }

  async send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]> {
    const { ms, atOnce, outcome } = this.#forecasts.next().value ?? {
      ms: 15,
      atOnce: true,
      outcome: 'taken',
    };
    // The epoch distinguishes messages of a cluster that was dropped while they were in flight.
    const groupOf = ({ ref, version }: Delta) => `${ref.cluster} ${ref.node} ${version.epoch}`;
    const deltas = messages.map(({ body }) => parseDelta(body));
    const groups = new Set(deltas.map(groupOf));
    for (const { ref } of deltas) {
      if (this.#silent.has(ref.cluster)) this.faults.push(`${ref.cluster} is to be silent`);
    }
    for (const group of groups) {
      if (this.#underWay.has(group)) this.faults.push(`two calls carry ${group}`);
      this.#underWay.add(group);
    }
    const failures = refusals(messages, typeof outcome === 'string' ? [] : outcome.refused);
    const failed = new Set(failures.map(({ index }) => index));
    const arrive = () => {
      for (const [index, delta] of deltas.entries()) {
        if (outcome === 'lost' || failed.has(index)) continue;
        const newest = this.#newest.get(groupOf(delta));
        if (newest && compareVersions(newest, delta.version) >= 0)
          this.faults.push(`${groupOf(delta)} is out of order`);
        this.#newest.set(groupOf(delta), delta.version);
        this.#reader.receive(delta);
      }
    };
    if (atOnce) arrive();
    await pause(ms);
    if (!atOnce) arrive();
    for (const group of groups) this.#underWay.delete(group);
    if (outcome === 'lost' || outcome === 'unanswered') throw new QueueError('the queue is away');
    return failures;
  }
}

/** Returns failures for the messages at these places, and for later messages of their groups. */
function refusals(messages: readonly OutgoingMessage[], places: readonly number[]): readonly SendFailure[] {
  const stopped = new Set<string | undefined>();
  return messages.flatMap(({ groupId }, index) => {
    if (!places.includes(index) && !stopped.has(groupId)) return [];
    stopped.add(groupId);
    return [{ index, reason: 'not now', permanent: false }];
  });
}

/** The state that a reader of both queues derives, in any order of arrival. */
class Reader {
  readonly #newest = new Map<string, Delta>();
  readonly #listed = new Map<string, Delta & { readonly kind: 'node' }>();
  readonly #pods = new Map<string, Map<string, Delta & { readonly kind: 'pod' | 'pod-gone' }>>();

  receive(delta: Delta): void {
    const node = `${delta.ref.cluster} ${delta.ref.node}`;
    const keepNewest = <T extends Delta>(known: Map<string, T>, key: string, newer: T) => {
      const before = known.get(key);
      if (!before || compareVersions(before.version, newer.version) < 0) known.set(key, newer);
    };
    keepNewest(this.#newest, node, delta);
    if (delta.kind === 'node') {
      keepNewest(this.#listed, node, delta);
      return;
    }
    const pods = this.#pods.get(node) ?? new Map();
    this.#pods.set(node, pods);
    keepNewest(pods, onlyPod(delta) ?? '', delta);
  }

  /** Returns the taint keys, and for a tainted node its pods with the number of deciding tolerations. */
  of(cluster: string, node: string): unknown {
    const newest = this.#newest.get(`${cluster} ${node}`);
    const listed = this.#listed.get(`${cluster} ${node}`);
    const pods = new Map(listed?.pods.map((pod) => [pod.uid as string, pod]));
    for (const [uid, delta] of this.#pods.get(`${cluster} ${node}`) ?? []) {
      if (listed && compareVersions(delta.version, listed.version) < 0) continue;
      if (delta.kind === 'pod') pods.set(uid, delta.pod);
      else pods.delete(uid);
    }
    return inShort(newest?.taints ?? [], [...pods.values()]);
  }
}

function inShort(taints: readonly { readonly key: string }[], pods: readonly PodFacts[]): unknown {
  const uids = pods.map(({ uid, tolerations }) => `${uid}: ${tolerations.length}`).sort();
  return { taints: taints.map(({ key }) => key), pods: taints.length > 0 ? uids : [] };
}

function outboxOver(nodeDeltas: QueueSender, podDeltas: QueueSender): Outbox {
  const metrics = relayMetrics(new Registry());
  return new DeltaSender({ nodeDeltas, podDeltas, clock: { now: Date.now }, log: recordingLog(), metrics });
}

/** The true state of a cluster, and the relay that follows it. */
class FollowedCluster {
  readonly #name: ClusterName;
  readonly #outbox: Outbox;
  readonly #canSend: () => boolean;
  readonly #nodes = new Map(NODES.map((node) => [node as string, liveNode(node)]));
  readonly #pods = new Map<string, LivePod>();
  #view: ClusterView;
  #epoch = 0;

  constructor(name: string, outbox: Outbox, canSend: () => boolean) {
    this.#name = clusterName(name);
    this.#outbox = outbox;
    this.#canSend = canSend;
    this.#view = this.take();
  }

  /** Starts a new lease of the cluster, with an empty view. */
  take(): ClusterView {
    this.#epoch += 1;
    this.#view = new ClusterView(this.#name, this.#epoch);
    this.#view.replaceNodes([...this.#nodes.values()], Date.now());
    this.#outbox.dropCluster(this.#name);
    this.#outbox.open(this.#name, this.#view, this.#canSend);
    // The nodes that a former relay reported as tainted.
    this.#mark(NODES.map((node) => ({ node: nodeName(node) })));
    return this.#view;
  }

  taint(node: string, ...keys: readonly string[]): void {
    const object = liveNode(node, ...keys);
    this.#nodes.set(node, object);
    this.#mark(this.#view.upsertNode(object, Date.now()));
  }

  /** Adds a pod, or changes its tolerations. */
  upsertPod(uid: string, node: string, tolerations = livePod().tolerations): void {
    const pod = livePod(uid, { node: nodeName(node), tolerations });
    this.#pods.set(uid, pod);
    this.#mark(this.#view.upsertPod(pod, Date.now()));
  }

  podGoes(uid: string): void {
    const pod = this.#pods.get(uid);
    this.#pods.delete(uid);
    if (pod) this.#mark(this.#view.deletePod(pod));
  }

  resync(): void {
    this.#mark(this.#view.resync([], Date.now()), true);
  }

  of(node: string): unknown {
    const { taints, pods } = this.#view.nodeDelta(nodeName(node), Date.now(), false);
    return inShort(taints, pods);
  }

  #mark(subjects: readonly Subject[], wake = false): void {
    this.#outbox.mark(this.#name, subjects, wake);
    for (const node of this.#view.followed()) {
      if (this.#view.isComplete(node)) continue;
      const pods = [...this.#pods.values()].filter((pod) => pod.node === node);
      this.#outbox.mark(this.#name, this.#view.replacePods(node, pods, Date.now()));
    }
  }
}

test('keeps the deltas of a node in order, and finally reports the true state, for any durations and results of calls', async (context) => {
  const time = driveTimers(context);
  const stories = fc.asyncProperty(
    fc.array(step, { minLength: 20, maxLength: 150 }),
    fc.array(forecast, { maxLength: 40 }),
    fc.array(forecast, { maxLength: 40 }),
    async (steps, nodeForecasts, podForecasts) => {
      const silent = new Set<string>();
      const reader = new Reader();
      const queues = [nodeForecasts, podForecasts].map(
        (forecasts) => new FatefulQueue(forecasts, silent, reader),
      );
      const [nodeDeltas, podDeltas] = queues;
      assert.ok(nodeDeltas && podDeltas);
      const outbox = outboxOver(nodeDeltas, podDeltas);
      const clusters = new Map(
        CLUSTERS.map((name) => [name, new FollowedCluster(name, outbox, () => !silent.has(name))]),
      );
      for (const [index, { thenMs, ...step }] of steps.entries()) {
        const cluster = clusters.get(step.cluster);
        assert.ok(cluster);
        happen(step, index, { cluster, silent, outbox });
        if (thenMs > 0) await time.pass(thenMs);
      }
      silent.clear();
      outbox.send();
      let drained = false;
      void outbox.drained().then(() => {
        drained = true;
      });
      for (let minutes = 0; minutes < 10 && !drained; minutes++) await time.pass(60_000);
      assert.deepEqual(
        queues.flatMap(({ faults }) => faults),
        [],
      );
      assert.ok(drained, 'something is not sent after ten minutes');
      for (const [name, cluster] of clusters) {
        for (const node of NODES)
          assert.deepEqual(reader.of(name, node), cluster.of(node), `${name} ${node}`);
      }
    },
  );
  await fc.assert(stories, { numRuns: 60 });
});

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

function happen(
  { cluster: name, node, pod, what }: Omit<Step, 'thenMs'>,
  index: number,
  { cluster, silent, outbox }: { cluster: FollowedCluster; silent: Set<string>; outbox: Outbox },
): void {
  const uid = `${node}-${pod}`;
  switch (what) {
    case 'taint':
      cluster.taint(node, 'a', ...(index % 2 ? ['b'] : []));
      return;
    case 'untaint':
      cluster.taint(node);
      return;
    case 'pod comes':
      cluster.upsertPod(uid, node);
      return;
    case 'pod changes':
      cluster.upsertPod(uid, node, []);
      return;
    case 'pod goes':
      cluster.podGoes(uid);
      return;
    case 'all again':
      cluster.resync();
      return;
    case 'falls silent':
      silent.add(name);
      return;
    case 'speaks again':
      silent.delete(name);
      outbox.send();
      return;
    case 'is taken anew':
      cluster.take();
      return;
    default:
      what satisfies never;
  }
}

test('sends a delta of a cluster after at most one round of the other clusters, for any number of clusters', async (context) => {
  driveTimers(context);
  const storms = fc.asyncProperty(
    fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 30 }),
    fc.nat(40),
    async (storm, late) => {
      const nodes = new OrderedQueue();
      const outbox = outboxOver(nodes, new OrderedQueue());
      const open = (name: string, count: number) => {
        const view = new ClusterView(clusterName(name), 1);
        view.replaceNodes([], Date.now());
        outbox.open(clusterName(name), view, () => true);
        for (let index = 0; index < count; index++) {
          const node = liveNode(`n${index}`, 'a');
          outbox.mark(clusterName(name), view.upsertNode(node, Date.now()));
          outbox.mark(clusterName(name), view.replacePods(node.name, [], Date.now()));
        }
      };
      // During the storm, or after it.
      nodes.onSend = () => {
        if (nodes.calls.length === late) open('quiet', 1);
        return [];
      };
      for (const [index, count] of storm.entries()) open(`loud-${index}`, count);
      await outbox.drained();
      const sentIn = nodes.calls.findIndex((call) => call.some(({ body }) => body.includes('"quiet"')));
      assert.equal(sentIn >= 0, late > 0 && late <= nodes.calls.length);
      if (sentIn < 0) return;
      const waited = sentIn + 1 - late;
      assert.ok(waited <= Math.ceil((storm.length + 1) / 10), `it waited for ${waited} calls`);
    },
  );
  await fc.assert(storms, { numRuns: 60 });
});
