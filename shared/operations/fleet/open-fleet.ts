import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Connect } from '#shared/access/connect.ts';
import { localContextConnection } from '#shared/access/local-context-connection.ts';
import { defined } from '#shared/defined.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { ForeignFileError } from '#shared/files/owner-only.ts';
import { DEFAULT_NAMESPACE } from '#shared/state/objects/kubernetes-state.ts';
import type { LocalContextAccess } from '#shared/state/registry.ts';
import { isInUse, STORE_FILE } from '#shared/state/sqlite/state-directory.ts';
import type { Clock } from '#shared/time/clock.ts';
import { type ContextFleet, type Fleet, UsageError } from './fleet.ts';
import type { FleetChoice, LiveChoice } from './fleet-choice.ts';
import { liveCluster } from './live-cluster.ts';
import { localFleet } from './local-fleet.ts';

const DEFAULT_STATE = '.taintward';

/** Variables that select an AWS account or region. */
const AWS_SETTINGS =
  /^AWS_((DEFAULT_)?(REGION|PROFILE)|ACCESS_KEY_ID|SESSION_TOKEN|ROLE_ARN|WEB_IDENTITY_TOKEN_FILE|CONTAINER_CREDENTIALS_\w+|CONFIG_FILE|SHARED_CREDENTIALS_FILE|ENDPOINT_URL\w*)$/;

export interface OpenFleetDeps {
  readonly clock: Clock;
  readonly connect: Connect;
  /** Reports the fleet that is used if none was specified. */
  hint(text: string): void;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * Opens the specified cluster, state directory, or table; else the state directory here, if its `npm start` runs or no
 * AWS account is selected. Rejects with `FleetError` or `StoreError` if there is none. Loads only the code of that kind
 * of fleet, because AWS' clients take longer to load than a command takes otherwise.
 */
export async function openFleet(
  { stateDir, table, inClusterContext, inClusterNamespace = DEFAULT_NAMESPACE }: FleetChoice,
  { clock, connect, hint, env = process.env }: OpenFleetDeps,
): Promise<Fleet> {
  if (inClusterContext !== undefined) {
    const { inClusterFleet } = await import('./in-cluster-fleet.ts');
    return inClusterFleet({ kind: 'local-context', context: inClusterContext }, inClusterNamespace, clock);
  }
  if (stateDir !== undefined) return localFleet(stateDir, clock);
  if (table !== undefined) {
    const { deployedFleet } = await import('./deployed-fleet.ts');
    return deployedFleet(table, { clock, connect });
  }
  const here = foundHere();
  if (here === undefined) {
    throw new UsageError(
      `No fleet is specified, and this directory has no state directory ${DEFAULT_STATE}. Specify --table NAME (or TAINTWARD_TABLE) for a deployment on AWS, --state-dir DIR for an npm start, or --in-cluster-context CONTEXT.`,
    );
  }
  if (here === 'running') {
    hint(`Using the npm start that runs in this directory (--state-dir ${DEFAULT_STATE}).`);
    return localFleet(DEFAULT_STATE, clock, { found: true });
  }
  const aws = Object.keys(env).filter((name) => AWS_SETTINGS.test(name) && env[name]);
  if (aws.length > 0) {
    throw new UsageError(
      `No npm start runs on the state directory ${DEFAULT_STATE} of this directory, and the environment selects an AWS account (${aws.join(', ')}). Specify the fleet: run taintward --state-dir ${DEFAULT_STATE} COMMAND, or taintward --table NAME COMMAND.`,
    );
  }
  hint(
    `No npm start runs in this directory. Using its state directory as it was left (--state-dir ${DEFAULT_STATE}). Changes apply once npm start runs again.`,
  );
  return { ...localFleet(DEFAULT_STATE, clock, { found: true }), isAbandoned: true };
}

/**
 * Reads the fleet's cluster by a context if one is specified; opens only that if no fleet is specified and no `npm
 * start` here manages the cluster. Rejects as {@link openFleet} does.
 */
export async function openLive(choice: LiveChoice, deps: OpenFleetDeps): Promise<Fleet | ContextFleet> {
  const { stateDir, table } = choice;
  const access = contextAccess(choice);
  if (!access) return openFleet(choice, deps);
  const bare = contextFleet(access, deps.clock);
  if (stateDir === undefined && table === undefined && choice.inClusterContext === undefined) {
    if (!runsHere(deps.hint)) return bare;
    const local = localFleet(DEFAULT_STATE, deps.clock, { found: true });
    const [name] = await bare.clusters();
    if (name === undefined || !(await local.manages(name))) {
      local.close();
      return bare;
    }
    deps.hint(`Using the npm start that runs in this directory (--state-dir ${DEFAULT_STATE}).`);
    return connectedBy(access, local, deps.clock);
  }
  return connectedBy(access, await openFleet(choice, deps), deps.clock);
}

/** Returns the access by a context. Throws `UsageError` for a kubeconfig without one. */
export function contextAccess({ context, kubeconfig }: LiveChoice): LocalContextAccess | undefined {
  if (context !== undefined) return { kind: 'local-context', context, ...defined({ kubeconfig }) };
  if (kubeconfig === undefined) return undefined;
  throw new UsageError('--kubeconfig requires --context NAME, which selects the cluster.');
}

const connectedBy = (access: LocalContextAccess, fleet: Fleet, clock: Clock): Fleet => ({
  ...fleet,
  cluster: async () => liveCluster(localContextConnection(access), clock),
});

/** Throws `ForeignFileError` if the state directory is that of another user. */
function foundHere(): 'running' | 'left' | undefined {
  if (isInUse(DEFAULT_STATE)) return 'running';
  return existsSync(join(DEFAULT_STATE, STORE_FILE)) ? 'left' : undefined;
}

/** Reports whether it runs. A state directory of another user is ignored, with a hint: nothing is read or changed. */
function runsHere(hint: OpenFleetDeps['hint']): boolean {
  try {
    return foundHere() === 'running';
  } catch (error) {
    if (!(error instanceof ForeignFileError)) throw error;
    hint(`The state directory ${DEFAULT_STATE} of this directory is ignored: ${error.message}.`);
    return false;
  }
}

/** Named after the context. Its calls reject with `KubeconfigError` if the context doesn't exist. */
export function contextFleet(access: LocalContextAccess, clock: Clock): ContextFleet {
  const name = clusterName(access.context);
  return {
    kind: 'context',
    where: `context ${access.context}`,
    clusters: async () => [name],
    manages: async (cluster) => cluster === name,
    cluster: async () => liveCluster(localContextConnection(access), clock),
    close: () => undefined,
  };
}
