import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Console, ConsoleAddressError, startConsole } from '#shared/console/server.ts';
import { LINK_TERMS } from '#shared/console/session.ts';
import { chosenClusters } from '#shared/engine/clusters/chosen-clusters.ts';
import { ClustersRejectedError, ManagedClusters } from '#shared/engine/clusters/managed-clusters.ts';
import { ProbeAddressError } from '#shared/engine/clusters/probe-server.ts';
import { ForeignFileError } from '#shared/files/owner-only.ts';
import { exitWithError } from '#shared/files/system-error.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { REACHED_BY_FILE, reachedBy, writeReachedBy } from '#shared/operations/fleet/reached-by.ts';
import { listenOnSocket, SOCKET_FILE } from '#shared/operations/fleet/state-socket.ts';
import { OperatorError } from '#shared/state/operator.ts';
import { PolicyError } from '#shared/state/policy-document.ts';
import { readPolicyFile } from '#shared/state/policy-file.ts';
import { sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { StateDirectoryError, takeStateDirectory } from '#shared/state/sqlite/state-directory.ts';
import { StoreError } from '#shared/state/store.ts';
import { once } from '#shared/time/cache.ts';
import { systemClock } from '#shared/time/clock.ts';
import { onStopSignal } from '#shared/time/stopping.ts';
import { answerSocket } from './answer-socket.ts';
import { isSimulated, parseOptions, type StartOptions, serviceOptions } from './options.ts';
import { startLocalService } from './service.ts';
import { neededPermissions } from './start-policies.ts';
import { probesText, rulesLines } from './start-report.ts';
import { openTerminal } from './terminal.ts';

/** Errors that the operator can cause. Their messages are written for the operator. */
const OPERATOR_ERRORS = [
  ClustersRejectedError,
  ConsoleAddressError,
  ForeignFileError,
  KubeconfigError,
  OperatorError,
  PolicyError,
  StateDirectoryError,
  StoreError,
  ProbeAddressError,
];

async function run(options: StartOptions): Promise<void> {
  const speech = openTerminal(options.log, systemClock);
  const { log, print, isToTerminal } = speech;
  const stopped = Promise.withResolvers<void>();
  const state = takeStateDirectory(options.stateDir);
  // Load the simulated cluster only if it is used.
  const demo = isSimulated(options)
    ? await (await import('./demo.ts')).startDemo(state.file('cluster'), systemClock, speech, stopped.resolve)
    : undefined;
  const choice = demo ? { contexts: [demo.context], kubeconfig: demo.kubeconfig } : options;
  const chosen = chosenClusters(
    choice,
    // Hosts can share a name. The name is for people, and the random part distinguishes processes.
    `${hostname()}-${randomUUID().slice(0, 8)}`,
  );
  writeReachedBy(state.file(REACHED_BY_FILE), reachedBy(choice));
  const given = serviceOptions(options);
  const serviceState = sqliteState({
    directory: state.path,
    historyDays: options.historyDays,
    clock: systemClock,
    log,
    lost: fail,
  });
  const permissions = neededPermissions(given.policies, serviceState.rulesStore);
  const clusters = await ManagedClusters.open(chosen, { clock: systemClock, log, permissions });
  const service = await startLocalService({ ...given, clusters, state: serviceState, log });
  log.info('relay.started', { port: service.probePort });
  /** The console's API, for the page and the socket. It is loaded on first use. */
  const api = once(async () => {
    const [{ localFleet }, { fleetApi }] = await Promise.all([
      import('#shared/operations/fleet/local-fleet.ts'),
      import('#shared/console/fleet-api.ts'),
    ]);
    const fleet = { ...localFleet(state.path, systemClock), service: async () => service.view() };
    return fleetApi({ fleet, matching: given.matching, demo: demo?.byClick, clock: systemClock, log });
  });
  let console: Console | undefined;
  const answers = { view: service.view, link: () => console?.link(), api };
  const socket = await listenOnSocket(state.file(SOCKET_FILE), answerSocket(answers), log);
  if (!socket)
    log.warn('socket.unavailable', {
      error: `the socket path ${state.file(SOCKET_FILE)} is too long: use a shorter --state-dir`,
    });
  const names = chosen.map(({ name }) => name).join(', ');
  print(`Managing ${names}. ${probesText(options.host, service.probePort)}`);
  for (const line of rulesLines(await service.rules(), systemClock.now())) print(line);
  if (options.consolePort !== undefined)
    console = await startConsole({
      port: options.consolePort,
      portSetBy: '--console-port',
      api,
      clock: systemClock,
      log,
    });
  if (console) log.info('console.started', { address: console.address });
  if (demo) demo.invite(console?.link);
  else if (console) {
    const link = isToTerminal
      ? `Console (${LINK_TERMS}): ${console.link()}`
      : `Console: to get a link, run npx taintward --state-dir ${options.stateDir} console`;
    print(link);
  }

  onStopSignal(stopped.resolve);
  await stopped.promise;
  log.info('relay.stopping');
  print('Stopping. After a restart, all timers continue.');
  await socket?.close();
  await console?.close();
  await service.stop();
  clusters.close();
  await demo?.close();
  state.release();
  log.info('relay.stopped');
}

/** Runs the service in a cluster. Loaded only there. */
const runInCluster: typeof run = async (options) =>
  (await import('./in-cluster.ts')).runInCluster(options, openTerminal(options.log, systemClock));

try {
  const options = parseOptions(process.argv.slice(2));
  // Report errors in the policy file before anything starts.
  if (options.policyFile !== undefined) readPolicyFile(options.policyFile);
  await (options.inCluster ? runInCluster(options) : run(options));
} catch (error) {
  fail(error);
}

/** Ends the process as if it were killed, with one sentence for the operator. */
function fail(error: unknown): never {
  exitWithError('taintward', error, OPERATOR_ERRORS);
}
