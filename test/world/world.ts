import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { createHandler as createDeltaHandler } from '#functions/deltas/handler.ts';
import { createHandler as createEvictHandler } from '#functions/evict/handler.ts';
import { encodeDelta, messageGroupId } from '#shared/aws/delta-message.ts';
import { encodeDue, settingAside } from '#shared/aws/due-message.ts';
import type { VisibilityControl } from '#shared/aws/sqs-visibility.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { type ClusterName, clusterName, type NodeRef } from '#shared/eviction/identity.ts';
import { EmbeddedPermits } from '#shared/state/embedded-permits.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import type { OutgoingMessage, QueueSender } from '#shared/state/sender.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import type { TaintedNode } from '#shared/state/store.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import { type Log, type LogFields, logTo } from '#shared/telemetry/log.ts';
import type { LogEvent } from '#shared/telemetry/log-events.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { DrivenClock } from './driven-clock.ts';
import { enforcing } from './enforced-rules.ts';
import { FakeCluster } from './fake-cluster.ts';
import { FakeObjects } from './fake-objects.ts';
import { NO_METRICS } from './no-metrics.ts';
import { SendingView } from './sending-view.ts';
import { sqsEvent, sqsRecord } from './sqs-event.ts';

/** A log line and its time. */
export interface LogLine {
  readonly at: EpochMs;
  readonly event: LogEvent;
  readonly fields: LogFields;
}

type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>;

/**
 * The real relay logic and the real handlers over one cluster in memory, on a driven clock. The effect of a message or
 * a timer happens when the clock reaches its time. The store is the embedded one.
 */
export class World {
  readonly clock: DrivenClock;
  readonly cluster: FakeCluster;
  readonly log: LogLine[] = [];
  readonly deadLetters: OutgoingMessage[] = [];
  readonly store = new SqliteStore({ path: ':memory:' });
  readonly #name: ClusterName = clusterName('c1');
  readonly #handlers: { readonly node: Handler; readonly pod: Handler; readonly evict: Handler };
  /** The requested visibility changes, by message. */
  readonly #retries: { readonly receiptHandle: string; readonly seconds: number }[] = [];
  #epoch = 1;
  #view: SendingView | undefined;
  #messages = 0;

  constructor(startAt: EpochMs, matching: MatchOptions) {
    this.clock = new DrivenClock(startAt);
    this.cluster = new FakeCluster(this.clock);
    const { clock, store } = this;
    const log = this.#recordingLog();
    const deadLetters: QueueSender = {
      send: async (messages) => {
        this.deadLetters.push(...messages);
        return [];
      },
    };
    const dueQueue: QueueSender = {
      send: async (messages) => {
        for (const { body, delaySeconds = 0 } of messages)
          this.#deliverDue(body, clock.now() + delaySeconds * 1000);
        return [];
      },
    };
    const timers = {
      arm: async (ref: NodeRef, times: readonly EpochMs[]) => {
        for (const at of times) this.#deliverDue(encodeDue({ ...ref, at }), at);
      },
    };
    const visibility: VisibilityControl = {
      retryIn: async (messages) => {
        this.#retries.push(...messages);
      },
    };
    const leaseEpoch = async () => this.#epoch - 1;
    const common = {
      clock,
      log,
      store,
      timers,
      rules: enforcing(matching),
      deadLetters,
      visibility,
      leaseEpoch,
    };
    this.#handlers = {
      node: createDeltaHandler({ ...common, dueQueue }),
      pod: createDeltaHandler({ ...common, dueQueue }),
      evict: createEvictHandler({
        ...common,
        setAside: settingAside(deadLetters),
        clusters: { api: async () => this.cluster },
        permits: new EmbeddedPermits(() => clock.now(), objectPermits(new FakeObjects())),
        metrics: NO_METRICS,
      }),
    };
  }

  /** The relay's view; `undefined` while it is down. */
  get view(): SendingView | undefined {
    return this.#view;
  }

  /** Starts the service: it lists everything, and arms timers for the stored records. Returns the relay's deltas. */
  async start(): Promise<readonly Delta[]> {
    const view = new SendingView(this.#name, this.#epoch++);
    this.#view = view;
    const now = this.clock.now();
    view.replaceNodes([...this.cluster.liveNodes.values()], now);
    view.replacePods([...this.cluster.livePods.values()], now);
    const stored: TaintedNode[] = [];
    for await (const node of this.store.taintedNodes(this.#name)) stored.push(node);
    for await (const { ref, dueAt } of this.store.upcoming())
      this.#deliverDue(encodeDue({ ...ref, at: dueAt }), dueAt);
    return view.resync(stored, now, true);
  }

  /** Stops the service, which loses its memory, including messages in flight and timers. */
  stop(): void {
    this.#view = undefined;
    this.clock.clearAlarms();
  }

  /** Passes deltas to their handlers, as messages, one by one; failed messages are redelivered a second later. */
  async deliver(deltas: readonly Delta[]): Promise<void> {
    for (const delta of deltas) {
      const handler = delta.kind === 'node' ? this.#handlers.node : this.#handlers.pod;
      const record = sqsRecord(encodeDelta(delta), {
        messageId: this.#nextId(),
        groupId: messageGroupId(delta.ref),
      });
      const response = await handler(sqsEvent(record), NO_CONTEXT);
      if (response?.batchItemFailures.length) {
        this.clock.setAlarm(this.clock.now() + 1000, () => this.deliver([delta]));
      }
    }
  }

  #deliverDue(body: string, at: EpochMs, receives = 1): void {
    const messageId = this.#nextId();
    this.clock.setAlarm(at, async () => {
      const response = await this.#handlers.evict(
        sqsEvent(sqsRecord(body, { messageId, receives })),
        NO_CONTEXT,
      );
      if (!response?.batchItemFailures.length) return;
      const retry = this.#retries.find(({ receiptHandle }) => receiptHandle === messageId);
      this.#deliverDue(body, this.clock.now() + (retry?.seconds ?? 30) * 1000, receives + 1);
    });
  }

  #nextId(): string {
    this.#messages += 1;
    return `m${this.#messages}`;
  }

  #recordingLog(): Log {
    return logTo((_severity, { event, fields }) => this.log.push({ at: this.clock.now(), event, fields }));
  }
}

/** The handlers use only the event. */
const NO_CONTEXT = {} as Context;
