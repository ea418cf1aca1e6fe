import { SchedulerClient } from '@aws-sdk/client-scheduler';
import { SQSClient } from '@aws-sdk/client-sqs';
import { Registry } from 'prom-client';
import { CLIENT_SETTINGS, SQS_SETTINGS, SQS_WAITING_SETTINGS } from '#shared/access/client-settings.ts';
import { AwsTimers } from '#shared/aws/aws-timers.ts';
import { processBatch } from '#shared/aws/consume.ts';
import { deployedTable } from '#shared/aws/deployed-table.ts';
import { dueConsumption } from '#shared/aws/due-consumption.ts';
import { duePorts } from '#shared/aws/due-ports.ts';
import { schedulesIn } from '#shared/aws/due-queues.ts';
import {
  agentEnvironment,
  EnvironmentError,
  probeAddress,
  readEnvironment,
} from '#shared/aws/environment.ts';
import { openAwsRelay } from '#shared/aws/relay/aws-relay.ts';
import { RegistryFollower } from '#shared/aws/relay/follow-registry.ts';
import { sqsSender } from '#shared/aws/sqs-sender.ts';
import { chosenCluster } from '#shared/engine/clusters/chosen-clusters.ts';
import { ClustersRejectedError, ManagedClusters } from '#shared/engine/clusters/managed-clusters.ts';
import {
  type ClusterState,
  ProbeAddressError,
  startProbeServer,
} from '#shared/engine/clusters/probe-server.ts';
import { prometheusEvictionMetrics } from '#shared/engine/evict/eviction-metrics.ts';
import { LaterEvents } from '#shared/engine/evict/later-events.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { exitWithError } from '#shared/files/system-error.ts';
import { contextConnection, inClusterConnection } from '#shared/kubernetes/kubeconfig/kubeconfig.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { requiredUnder } from '#shared/kubernetes/permissions.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { rulesReader } from '#shared/state/rules-store.ts';
import { jsonLog } from '#shared/telemetry/log.ts';
import { systemClock } from '#shared/time/clock.ts';
import { endsWithin, onStopSignal } from '#shared/time/stopping.ts';
import { dueMetrics } from './due-metrics.ts';
import { DueSource } from './due-source.ts';
import { type AgentOptions, parseOptions } from './options.ts';
import { ownRegistration, rejectOtherClusters } from './own-cluster.ts';
import { stopAgent } from './stop-agent.ts';

/** Kubernetes kills the pod 30 s after it asks it to stop. The next relay sends unsent deltas. */
const STOP_TIMEOUT_MS = 25_000;
/** Part of that time for the messages in hand, counted from the end of the last receive call. */
const HANDLED_WITHIN_MS = 10_000;

/** Errors that the operator can cause. Their messages are written for the operator. */
const OPERATOR_ERRORS = [ClustersRejectedError, EnvironmentError, KubeconfigError, ProbeAddressError];

async function run({ context, kubeconfig }: AgentOptions): Promise<void> {
  const environment = readEnvironment(agentEnvironment, process.env);
  const { AGENT: agent, CLUSTER: cluster, EVICTIONS_DUE_URL: queueUrl } = environment;
  const log = jsonLog();
  const clock = systemClock;
  const stopping = new AbortController();
  onStopSignal(() => stopping.abort());

  const connection = context === undefined ? inClusterConnection() : contextConnection(context, kubeconfig);
  const connect = () => connection;
  const chosen = chosenCluster(cluster, connect, (way) => new RestApi(way, clock));
  const prometheus = new Registry();
  const sqs = new SQSClient(SQS_SETTINGS);
  const table = deployedTable(environment);
  const rulesStore = new DynamoDbRulesStore(table);
  const permissions = async (name: ClusterName) =>
    requiredUnder((await rulesStore.read(name)).orders.policy?.read ?? DEFAULT_POLICY);
  const clusters = await ManagedClusters.open([chosen], { clock, log, permissions });
  const registry = new DynamoDbClusterRegistry(table);
  const laterEvents = new LaterEvents();
  const ports = duePorts(environment, {
    table,
    sqs,
    queueUrl,
    connect,
    clock,
    log,
    laterEvents,
    rules: rulesReader({
      rulesStore,
      matching: { comparisonOperators: environment.COMPARISON_OPERATORS },
      clock,
    }),
    registry,
    timers: new AwsTimers({
      dueQueue: sqsSender(sqs, queueUrl),
      scheduler: new SchedulerClient(CLIENT_SETTINGS),
      schedulesOf: schedulesIn(environment),
      clock,
    }),
    sendOn: rejectOtherClusters(cluster, agent),
    metrics: prometheusEvictionMetrics(prometheus),
  });
  // No capacity limit: only the agent's own replicas can take over the cluster.
  const { relay, stop: stopRelay } = await openAwsRelay(environment, {
    table,
    sqs,
    log,
    nodeBudget: Infinity,
    metrics: relayMetrics(prometheus),
  });
  const consumer = { ...ports, ...dueConsumption(ports) };
  const due = new DueSource({
    client: new SQSClient(SQS_WAITING_SETTINGS),
    queueUrl,
    handle: (messages) => laterEvents.ahead(() => processBatch(messages, consumer)),
    visibility: ports.visibility,
    reached: (error) => relay.noted(cluster, { type: 'queue-unavailable' }, error),
    metrics: dueMetrics(prometheus),
    clock,
    log,
  });
  let follower: RegistryFollower | undefined;
  const probes = await startProbeServer(probeAddress(environment), {
    registry: prometheus,
    states: () => new Map<ClusterName, ClusterState>([...clusters.states, ...relay.states()]),
    trips: () => relay.trips(),
    faults: () => relay.faults(),
    registryError: () => follower?.error,
    log,
  });
  log.info('relay.started', { port: probes.port });
  const { promise: admitted, resolve: admit } = Promise.withResolvers<void>();
  clusters.admit(() => admit(), stopping.signal);
  stopping.signal.addEventListener('abort', () => admit());
  await admitted;
  follower = new RegistryFollower({
    registry: ownRegistration({ registry, cluster, agent, log }),
    follows: () => true,
    installation: environment.INSTALLATION_NAME,
    connect,
    relay,
    log,
    signal: stopping.signal,
  });
  await follower.run();

  log.info('relay.stopping');
  const stopped = stopAgent({
    relay: stopRelay,
    evictions: () => due.stop(HANDLED_WITHIN_MS),
    events: () => laterEvents.stop(),
  });
  if (!(await endsWithin(STOP_TIMEOUT_MS, stopped)))
    log.warn('relay.shutdown-timed-out', { afterMs: STOP_TIMEOUT_MS });
  log.info('relay.stopped');
  process.exit(0);
}

try {
  await run(parseOptions(process.argv.slice(2)));
} catch (error) {
  exitWithError('taintward agent', error, OPERATOR_ERRORS);
}
