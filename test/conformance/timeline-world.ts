import type { Delta } from '#shared/eviction/facts.ts';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { World } from '#test/world/world.ts';
import type { Played, Timeline, TimelineEvent } from './timeline.ts';

/** The start of timelines. Any time works; this one has no fraction of a second. */
const START_AT: EpochMs = Date.UTC(2026, 0, 1);

const atOf = (t: number): EpochMs => START_AT + t * 1000;
const secondsOf = (at: EpochMs): number => (at - START_AT) / 1000;

/** Plays a timeline through the real relay logic, handlers, embedded store and evict code on a driven clock. */
export async function playTimeline(timeline: Timeline): Promise<Played> {
  const player = new Player(timeline);
  await player.play();
  return player.played();
}

class Player {
  readonly #timeline: Timeline;
  readonly #world: World;
  /** The relay's deltas, by the event that caused them; kept when a delivery order is given. */
  readonly #deltas = new Map<number, readonly Delta[]>();
  #failDeletes = 0;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
    this.#world = new World(START_AT, timeline.options);
    const { cluster } = this.#world;
    cluster.beforeRequest = (verb) => {
      if (verb !== 'delete' || this.#failDeletes === 0) return;
      this.#failDeletes -= 1;
      throw new ApiError('delete pod: the server answered 500', 500, 'InternalError');
    };
    cluster.onDeleted = (pod) => {
      // The delete event follows immediately, on the watch.
      const { clock, view } = this.#world;
      const deltas = view?.deletePod(pod, clock.now()) ?? [];
      clock.setAlarm(clock.now(), () => this.#world.deliver(deltas));
    };
  }

  async play(): Promise<void> {
    const { events, delivery, until } = this.#timeline;
    const { clock } = this.#world;
    await this.#world.start();
    const deliveries = deliveryTimes(events, delivery);
    for (const [index, event] of events.entries()) {
      await this.#deliver(deliveries, (next) => next.t < event.t || next.index < index);
      await clock.advanceTo(atOf(event.t));
      const deltas = await this.#happen(event);
      if (delivery) this.#deltas.set(index, deltas);
      else await this.#world.deliver(deltas);
      await clock.advanceTo(atOf(event.t));
    }
    await this.#deliver(deliveries, () => true);
    await clock.advanceTo(atOf(until));
  }

  /** Delivers the messages that are due, as long as the next one's event has happened. */
  async #deliver(deliveries: Delivery[], isDue: (next: Delivery) => boolean): Promise<void> {
    for (
      let next = deliveries[0];
      next && this.#deltas.has(next.index) && isDue(next);
      next = deliveries[0]
    ) {
      deliveries.shift();
      await this.#world.clock.advanceTo(atOf(next.t));
      await this.#world.deliver(this.#deltas.get(next.index) ?? []);
      await this.#world.clock.advanceTo(atOf(next.t));
    }
  }

  async #happen(event: TimelineEvent): Promise<readonly Delta[]> {
    const { cluster, clock } = this.#world;
    const now = clock.now();
    switch (event.kind) {
      case 'node': {
        const name = nodeName(event.name);
        if (event.op === 'delete') {
          cluster.removeNode(name);
          return this.#world.view?.deleteNode(name, now) ?? [];
        }
        const node = cluster.putNode({ name, taints: event.taints });
        return this.#world.view?.upsertNode(node, now) ?? [];
      }
      case 'pod': {
        if (event.op === 'delete') {
          const gone = cluster.removePod(event);
          return gone ? (this.#world.view?.deletePod(gone, now) ?? []) : [];
        }
        const pod = cluster.putPod(this.#podOf(event, now));
        return this.#world.view?.upsertPod(pod, now) ?? [];
      }
      case 'controller':
        if (event.op !== 'start') this.#world.stop();
        return event.op === 'stop' ? [] : this.#world.start();
      case 'api':
        this.#failDeletes = event.count;
        return [];
      default:
        return event satisfies never;
    }
  }

  #podOf(
    event: Extract<TimelineEvent, { op: 'upsert'; kind: 'pod' }>,
    now: EpochMs,
  ): Omit<LivePod, 'resourceVersion'> {
    const node = event.node === '' ? undefined : nodeName(event.node);
    const before = this.#world.cluster.livePods.get(`${event.namespace}/${event.name}`);
    const bound = before?.uid === event.uid && before.node !== undefined;
    return {
      uid: podUid(event.uid),
      namespace: event.namespace,
      name: event.name,
      node,
      tolerations: event.tolerations,
      podSince: bound ? before.podSince : now,
      terminating: false,
      disrupted: false,
    };
  }

  played(): Played {
    const { cluster, log } = this.#world;
    return {
      deletions: cluster.deletions.map(({ pod, at }) => ({ uid: pod.uid, t: secondsOf(at) })),
      cancellations: log
        .filter(({ event }) => event === 'eviction.canceled')
        .map(({ at, fields }) => ({
          pod: `${fields['namespace']}/${fields['pod']}`,
          t: secondsOf(at),
          because: String(fields['reason']),
          uid: String(fields['uid']),
        })),
      wrongUid: cluster.deletions.filter(({ pod, meant }) => pod.uid !== meant).map(({ pod }) => pod.uid),
    };
  }
}

interface Delivery {
  /** The index of the event that caused these messages. */
  readonly index: number;
  readonly t: number;
}

/**
 * Returns the time at which each message reaches its handler: its own time, or that of the previous message when that
 * is later.
 */
function deliveryTimes(
  events: readonly TimelineEvent[],
  delivery: readonly number[] | undefined,
): Delivery[] {
  let latest = 0;
  return (delivery ?? []).map((index) => {
    latest = Math.max(latest, events[index]?.t ?? 0);
    return { index, t: latest };
  });
}
