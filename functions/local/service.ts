import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { Registry } from 'prom-client';
import { createHandler as createDeltaHandler, DELTA_BATCH_SIZE } from '#functions/deltas/handler.ts';
import { createHandler as createEvictHandler, EVICT_BATCH_SIZE } from '#functions/evict/handler.ts';
import { Outbox } from '#functions/watch-relay/outbox.ts';
import { startProbeServer } from '#functions/watch-relay/probe-server.ts';
import { Relay } from '#functions/watch-relay/relay.ts';
import { relayMetrics } from '#functions/watch-relay/relay-metrics.ts';
import { UnknownClusterError } from '#shared/clusters/cluster-access.ts';
import { leaseEpochs } from '#shared/clusters/lease.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { type EmbeddedSqs, startEmbeddedSqs } from '#shared/queues/embedded-sqs.ts';
import { type EventSource, startEventSource } from '#shared/queues/event-source.ts';
import { createQueues, QUEUES, type QueueSpec, type QueueUrls } from '#shared/queues/queue-set.ts';
import { SqsSender } from '#shared/queues/sqs-sender.ts';
import { SqsVisibility } from '#shared/queues/sqs-visibility.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { systemClock } from '#shared/time/clock.ts';
import { EmbeddedTimers } from './embedded-timers.ts';
import { prometheusEvictionMetrics } from './eviction-metrics.ts';
import { localContext } from './lambda-context.ts';
import { SqliteLeases } from './sqlite-leases.ts';
import { SqliteStore } from './sqlite-store.ts';
import { type StateDirectory, StateDirectoryError } from './state-directory.ts';
import { startUpkeep } from './upkeep.ts';

/** Batches handled at a time, per queue. Delta handlers wait for the store only, `evict` for API servers. */
const DELTA_CONCURRENCY = 4;
const EVICT_CONCURRENCY = 16;
/** This process is the only relay of its store; a restart takes its own lease over. */
const LEASE_HOLDER = 'local';

const NOTHING_FAILED: SQSBatchResponse = { batchItemFailures: [] };

export interface LocalServiceOptions {
  readonly clusters: ReadonlyMap<ClusterName, KubernetesApi>;
  readonly state: StateDirectory;
  readonly probes: { readonly host: string; readonly port: number };
  readonly matching: MatchOptions;
  readonly log: Log;
}

export interface LocalService {
  readonly probePort: number;
  /** Finishes what is in hand, gives the leases up and ends. Nothing timed is lost. */
  stop(): Promise<void>;
}

/**
 * The whole service in this process: the relay, the queues, the Lambda handlers behind their event sources, the
 * store and the timers. Rejects with `StoreError`, `StateDirectoryError` or `ProbePortError`, whose messages are
 * for the operator.
 */
export async function startLocalService(options: LocalServiceOptions): Promise<LocalService> {
  const { clusters, log, matching, state } = options;
  const clock = systemClock;
  const registry = new Registry();
  const metrics = relayMetrics(registry);
  const store = new SqliteStore({ path: state.file('store.sqlite') });
  const leases = new SqliteLeases({ database: store.database });
  const sqs = await openQueues(state.file('queues'));
  const { client } = sqs;
  const queues = await createQueues(client);
  const sender = (queueUrl: string) => new SqsSender({ client, queueUrl });
  const dueQueue = sender(queues.evictionsDue.url);
  const timers = new EmbeddedTimers({ dueQueue, clock, log });

  const common = { store, timers, clock, log, matching };
  const source = (
    { functionTimeoutSeconds }: QueueSpec,
    queueUrl: string,
    batchSize: number,
    concurrency: number,
    handler: (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>,
  ): EventSource =>
    startEventSource({
      client,
      queueUrl,
      batchSize,
      concurrency,
      handler: async (event) =>
        (await handler(event, localContext(functionTimeoutSeconds))) ?? NOTHING_FAILED,
      log,
    });
  const visibility = (queueUrl: string) => new SqsVisibility({ client, queueUrl, log });
  const deltaDeps = ({ url, dlqUrl }: QueueUrls) => ({
    ...common,
    leaseEpoch: leaseEpochs(leases, clock),
    dueQueue,
    visibility: visibility(url),
    deadLetters: sender(dlqUrl),
  });
  const evict = createEvictHandler({
    ...common,
    clusters: { api: async (cluster) => clusters.get(cluster) ?? refuseUnknown(cluster) },
    metrics: prometheusEvictionMetrics(registry),
    visibility: visibility(queues.evictionsDue.url),
    deadLetters: sender(queues.evictionsDue.dlqUrl),
  });

  const outbox = new Outbox({
    nodeDeltas: sender(queues.nodeDeltas.url),
    podDeltas: sender(queues.podDeltas.url),
    clock,
    log,
    metrics,
  });
  const relay = new Relay({
    leases,
    store,
    outbox,
    clock,
    log,
    metrics,
    holder: LEASE_HOLDER,
  });
  const probes = await startProbeServer(options.probes, registry, () => relay.states());

  const { nodeDeltas, podDeltas, evictionsDue } = queues;
  const sources = [
    source(
      QUEUES.nodeDeltas,
      nodeDeltas.url,
      DELTA_BATCH_SIZE,
      DELTA_CONCURRENCY,
      createDeltaHandler(deltaDeps(nodeDeltas)),
    ),
    source(
      QUEUES.podDeltas,
      podDeltas.url,
      DELTA_BATCH_SIZE,
      DELTA_CONCURRENCY,
      createDeltaHandler(deltaDeps(podDeltas)),
    ),
    source(QUEUES.evictionsDue, evictionsDue.url, EVICT_BATCH_SIZE, EVICT_CONCURRENCY, evict),
  ];
  await timers.rearm(store);
  const upkeep = startUpkeep({ store, timers, clock, log });
  for (const [name, api] of clusters) relay.add(name, api);

  return {
    probePort: probes.port,
    async stop() {
      await upkeep.stop();
      await relay.stop();
      await timers.stop();
      await Promise.all(sources.map((each) => each.stop()));
      await probes.close();
      await sqs.close();
      store.close();
    },
  };
}

/** Queues hold nothing that the store and the clusters do not tell anew, so damaged ones may be moved away. */
async function openQueues(dir: string): Promise<EmbeddedSqs> {
  try {
    return await startEmbeddedSqs({ dir });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new StateDirectoryError(
      `cannot use the queues in ${dir} (${why}): make it readable and writable, or move it away; no timer is lost`,
      { cause: error },
    );
  }
}

function refuseUnknown(cluster: ClusterName): never {
  throw new UnknownClusterError(
    `cluster ${cluster} is not managed by this process: name its context with --context ${cluster}`,
  );
}
