import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { chosenCluster } from '#shared/engine/clusters/chosen-clusters.ts';
import { ManagedClusters } from '#shared/engine/clusters/managed-clusters.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { contextConnection, inClusterConnection } from '#shared/kubernetes/kubeconfig/kubeconfig.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { DEFAULT_NAMESPACE, IN_CLUSTER, ledState } from '#shared/state/objects/kubernetes-state.ts';
import { StoreError } from '#shared/state/store.ts';
import { systemClock } from '#shared/time/clock.ts';
import { onStopSignal } from '#shared/time/stopping.ts';
import { type StartOptions, serviceOptions } from './options.ts';
import { type LocalService, startLocalService } from './service.ts';
import { neededPermissions } from './start-policies.ts';
import { probesText, rulesLines } from './start-report.ts';
import type { Terminal } from './terminal.ts';

const POD_NAMESPACE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/**
 * Runs one replica of the service in a cluster until it is asked to stop or loses its leadership. As with
 * `npm start`, it rejects with errors whose messages are for the operator.
 */
export async function runInCluster(options: StartOptions, { log, print }: Terminal): Promise<void> {
  const [context] = options.contexts;
  const connect = (): Connection =>
    context === undefined ? inClusterConnection() : contextConnection(context, options.kubeconfig);
  const namespace = options.inCluster?.namespace ?? ownNamespace(context !== undefined);
  const { historyDays } = options;
  const { state, leadership } = ledState({
    connection: connect(),
    namespace,
    historyDays,
    clock: systemClock,
    log,
  });
  const installation = `${hostname()}-${randomUUID().slice(0, 8)}`;
  const apiOf = (connection: Connection) =>
    new RestApi(connection, systemClock, installation, leadership.mayAct);
  const { policies: chosen, ...given } = serviceOptions(options);
  const policies = { ...chosen, source: chosen.source ?? state.policies };
  const clusters = await ManagedClusters.open([chosenCluster(IN_CLUSTER, connect, apiOf)], {
    clock: systemClock,
    log,
    permissions: neededPermissions(policies, state.rulesStore),
  });
  const service = await startLocalService({ ...given, policies, clusters, state, log });
  log.info('relay.started', { port: service.probePort });
  print(
    `Replica ${installation}, state in namespace ${namespace}. ${probesText(options.host, service.probePort)}`,
  );
  void leadership.begun.then(() => print('This replica is the leader.'));
  void service.leading.then(() => printRules(service, print));
  const stopped = new Promise<'stopped'>((resolve) => onStopSignal(() => resolve('stopped')));
  const why = await Promise.race([stopped, leadership.ended.then(() => 'followed' as const)]);
  log.info('relay.stopping');
  if (why === 'followed') {
    // The next leader continues the work in progress, so this replica does not wait for it.
    print('This replica is no longer the leader. It exits, to restart as a standby.');
    process.exit(1);
  }
  print('Stopping. Timers are stored, and the next leader continues them.');
  await service.stop();
  clusters.close();
  log.info('relay.stopped');
}

/** If the rules cannot be read, prints the error: nothing depends on this output. */
async function printRules(service: LocalService, print: Terminal['print']): Promise<void> {
  try {
    for (const line of rulesLines(await service.rules(), systemClock.now())) print(line);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    print(error.message);
  }
}

function ownNamespace(isOutside: boolean): string {
  return isOutside ? DEFAULT_NAMESPACE : readFileSync(POD_NAMESPACE, 'utf8').trim();
}
