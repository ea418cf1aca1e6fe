import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { localContextConnection } from '#shared/access/local-context-connection.ts';
import { localUser } from '#shared/access/local-user.ts';
import { findOwnDirectory } from '#shared/files/owner-only.ts';
import { isDefaultKubeconfig } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { SqliteHistory } from '#shared/state/sqlite/sqlite-history.ts';
import type { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { openState, sqliteLeases, sqliteRequests } from '#shared/state/sqlite/sqlite-state.ts';
import { isInUse, STORE_FILE } from '#shared/state/sqlite/state-directory.ts';
import { StoreError } from '#shared/state/store.ts';
import type { Clock } from '#shared/time/clock.ts';
import { type Fleet, FleetError } from './fleet.ts';
import { liveCluster } from './live-cluster.ts';
import { REACHED_BY_FILE, readReachedBy } from './reached-by.ts';
import { consoleLinkSchema, type ServiceView, serviceViewSchema } from './service-view.ts';
import { askSocket, SOCKET_FILE } from './state-socket.ts';

export interface LocalFleetOptions {
  /**
   * True if the directory was found, not specified. Then its kubeconfig must not start a program unless kubectl would
   * read it by default: otherwise, another user's working directory could start programs.
   */
  readonly found?: boolean;
}

/**
 * Reaches clusters by the service's contexts, whether it runs or not. Throws `FleetError` if it is no state directory,
 * `ForeignFileError` if another user owns it or may write to it, or `StoreError`.
 */
export function localFleet(
  directory: string,
  clock: Clock,
  { found = false }: LocalFleetOptions = {},
): Fleet {
  const dir = findOwnDirectory(directory) ?? resolve(directory);
  if (!existsSync(join(dir, STORE_FILE))) {
    throw new FleetError(`${join(dir, STORE_FILE)} not found. Specify the --state-dir of npm start.`);
  }
  const { store, rulesStore } = openState(dir);
  const { database } = store;
  stopIfLost(rulesStore, clock);
  const leases = sqliteLeases(database);
  const service = async (): Promise<ServiceView | undefined> => {
    const answer = await askSocket(join(dir, SOCKET_FILE), '/service');
    if (answer !== undefined) return serviceViewSchema.parse(answer);
    if (!isInUse(dir)) return undefined;
    throw new FleetError(
      `The running npm start does not respond on ${join(dir, SOCKET_FILE)}. Check whether it is suspended, or restart it.`,
    );
  };
  return {
    kind: 'local',
    where: `state directory ${dir}`,
    rulesStore,
    store,
    history: new SqliteHistory({ database }),
    leases,
    clusters: () => leases.clusters(),
    manages: async (cluster) => (await leases.clusters()).includes(cluster),
    async cluster(name) {
      const reached = readReachedBy(join(dir, REACHED_BY_FILE)).get(name);
      if (reached === undefined) {
        throw new FleetError(
          `No kubeconfig context is recorded for cluster "${name}" in ${dir}. Specify --context NAME.`,
        );
      }
      const { context, kubeconfig } = reached;
      const access = { kind: 'local-context', context, ...(kubeconfig ? { kubeconfig } : {}) } as const;
      const isNamed = !found || kubeconfig === undefined || isDefaultKubeconfig(kubeconfig);
      const options = isNamed ? {} : { noPrograms: notNamed(directory, kubeconfig) };
      return liveCluster(localContextConnection(access, options), clock);
    },
    async backlog() {
      const view = await service();
      return view && new Map(Object.entries(view.queues));
    },
    service,
    async consoleLink() {
      const answer = await askSocket(join(dir, SOCKET_FILE), '/console/link', 'POST');
      if (answer === undefined) return undefined;
      const { data, error } = consoleLinkSchema.safeParse(answer);
      if (data !== undefined) return data.link;
      throw new FleetError(
        `The response of ${join(dir, SOCKET_FILE)} ${error.issues[0]?.message}. Check which process listens there, and restart it.`,
      );
    },
    operator: async () => ({ rulesStore, clock, actor: localUser() }),
    dueQueue: async () => sqliteRequests(database),
    close() {
      rulesStore.close();
      store.close();
    },
  };
}

/** If the disk is not writable, records are shown without their rules, and the next `npm start` stops all clusters. */
function stopIfLost(rulesStore: SqliteRulesStore, clock: Clock): void {
  try {
    rulesStore.stopIfLost(clock.now());
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
  }
}

const notNamed = (directory: string, kubeconfig: string): string =>
  `its kubeconfig ${kubeconfig} is named by ${directory}, which you did not specify. If you trust that directory, specify --state-dir ${directory}.`;
