import { randomUUID } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { hostname } from 'node:os';
import { ProbeAddressError } from '#functions/watch-relay/probe-server.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig-file.ts';
import { StoreError } from '#shared/store/store.ts';
import { systemClock } from '#shared/time/clock.ts';
import { chosenClusters } from './chosen-clusters.ts';
import { ClustersRefusedError, ManagedClusters } from './managed-clusters.ts';
import { parseOptions, type StartOptions } from './options.ts';
import { startLocalService } from './service.ts';
import { StateDirectoryError, takeStateDirectory } from './state-directory.ts';
import { voice } from './voice.ts';

/** Whatever goes wrong by the operator's hand is one of these, with a message made for the operator. */
const OPERATOR_ERRORS = [
  ClustersRefusedError,
  KubeconfigError,
  StateDirectoryError,
  StoreError,
  ProbeAddressError,
];

async function run(options: StartOptions): Promise<void> {
  const speech = voice(options.log, systemClock);
  const { log, say } = speech;
  const stopped = Promise.withResolvers<void>();
  const state = takeStateDirectory(options.stateDir);
  const wantsDemo = options.contexts.length === 0 && !options.inCluster;
  // Who manages real clusters need not load a simulated one.
  const demo = wantsDemo
    ? await (await import('./demo.ts')).startDemo(state.file('cluster'), systemClock, speech, stopped.resolve)
    : undefined;
  const chosen = chosenClusters(
    demo ? { contexts: [demo.context], kubeconfig: demo.kubeconfig, inCluster: false } : options,
    // Hosts share names: that is for who reads it, the rest tells processes apart.
    `${hostname()}-${randomUUID().slice(0, 8)}`,
  );
  const clusters = await ManagedClusters.open(chosen, { clock: systemClock, log });
  const service = await startLocalService({
    clusters,
    state,
    probes: { host: options.host, port: options.port, setBy: { host: '--host', port: '--port' } },
    matching: { comparisonOperators: options.comparisonOperators },
    log,
  });
  log.info('relay.started', { port: service.probePort });
  const names = chosen.map(({ name }) => name).join(', ');
  const host = isIPv6(options.host) ? `[${options.host}]` : options.host;
  say(`Managing ${names}. Health and metrics: http://${host}:${service.probePort}/readyz, /metrics`);
  demo?.invite();

  process.once('SIGINT', () => stopped.resolve());
  process.once('SIGTERM', () => stopped.resolve());
  await stopped.promise;
  log.info('relay.stopping');
  say('Stopping. Timers are kept; start again to go on.');
  await service.stop();
  clusters.close();
  await demo?.close();
  state.release();
  log.info('relay.stopped');
}

try {
  await run(parseOptions(process.argv.slice(2)));
} catch (error) {
  const known = OPERATOR_ERRORS.some((kind) => error instanceof kind);
  process.stderr.write(`taintward: ${known ? (error as Error).message : (error as Error).stack}\n`);
  process.exit(1);
}
