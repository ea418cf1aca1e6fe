import { SQSClient } from '@aws-sdk/client-sqs';
import { Registry } from 'prom-client';
import { AwsClients } from '#shared/access/aws-clients.ts';
import { SQS_SETTINGS } from '#shared/access/client-settings.ts';
import { connector } from '#shared/access/connect.ts';
import { localContextConnection } from '#shared/access/local-context-connection.ts';
import { deployedTable } from '#shared/aws/deployed-table.ts';
import { stdoutEmf } from '#shared/aws/emf.ts';
import {
  EnvironmentError,
  probeAddress,
  readEnvironment,
  relayEnvironment,
} from '#shared/aws/environment.ts';
import { openAwsRelay } from '#shared/aws/relay/aws-relay.ts';
import { followedFromOutside, RegistryFollower } from '#shared/aws/relay/follow-registry.ts';
import { ProbeAddressError, startProbeServer } from '#shared/engine/clusters/probe-server.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { exitWithError } from '#shared/files/system-error.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { jsonLog } from '#shared/telemetry/log.ts';
import { systemClock } from '#shared/time/clock.ts';
import { endsWithin, onStopSignal } from '#shared/time/stopping.ts';
import { parseCommandLine } from './command-line.ts';

/**
 * Fargate and Kubernetes kill the process 30 s after they ask it to stop. The next relay sends any deltas
 * that are unsent by then.
 */
const STOP_TIMEOUT_MS = 20_000;

async function run(): Promise<void> {
  const environment = readEnvironment(relayEnvironment, process.env);
  const log = jsonLog();
  const stopping = new AbortController();
  onStopSignal(() => stopping.abort());

  const prometheus = new Registry();
  const table = deployedTable(environment);
  const registry = new DynamoDbClusterRegistry(table);
  const { relay, stop } = await openAwsRelay(environment, {
    table,
    sqs: new SQSClient(SQS_SETTINGS),
    registry,
    nodeBudget: environment.NODE_CAPACITY,
    metrics: relayMetrics(prometheus, stdoutEmf(environment.METRIC_NAMESPACE)),
    log,
  });
  const follower = new RegistryFollower({
    registry,
    follows: followedFromOutside(environment.CLUSTERS),
    connect: connector({ aws: new AwsClients(), clock: systemClock, localContext: localContextConnection }),
    relay,
    installation: environment.INSTALLATION_NAME,
    log,
    signal: stopping.signal,
  });
  const probes = await startProbeServer(probeAddress(environment), {
    registry: prometheus,
    states: () => relay.states(),
    trips: () => relay.trips(),
    faults: () => relay.faults(),
    registryError: () => follower.error,
    log,
  });
  log.info('relay.started', { port: probes.port });
  await follower.run();

  log.info('relay.stopping');
  if (!(await endsWithin(STOP_TIMEOUT_MS, stop())))
    log.warn('relay.shutdown-timed-out', { afterMs: STOP_TIMEOUT_MS });
  log.info('relay.stopped');
  process.exit(0);
}

try {
  parseCommandLine(process.argv.slice(2));
  await run();
} catch (error) {
  exitWithError('taintward relay', error, [EnvironmentError, ProbeAddressError]);
}
