import type { Command } from 'commander';
import type { Access, RegisteredCluster } from '#shared/clusters/registry.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { preflight } from '#shared/kubernetes/rights.ts';
import { type AccessOptions, addAccessOptions, parseAccess } from '../access-options.ts';
import { CliError } from '../cli-error.ts';
import type { CliDeps } from '../deps.ts';
import { nameArgument } from './name-argument.ts';

export function addAddCommand(clusters: Command, deps: CliDeps): void {
  const command = clusters
    .command('add')
    .description('has a cluster managed, after a check that it can be reached and grants what is needed')
    .addArgument(nameArgument());
  addAccessOptions(command).action(async (name: ClusterName) => {
    const { table, ...options } = command.optsWithGlobals<AccessOptions & { table: string }>();
    await add({ name, access: parseAccess(options), addedAt: deps.clock.now() }, table, deps);
  });
}

async function add(cluster: RegisteredCluster<Access>, table: string, deps: CliDeps): Promise<void> {
  const registry = deps.registry(table);
  if (await registry.get(cluster.name)) throw alreadyThere(cluster.name);
  await check(cluster, deps);
  if ((await registry.add(cluster)) === 'exists') throw alreadyThere(cluster.name);
  deps.print(`Cluster ${cluster.name} is registered and managed within 30 s.\n`);
  if (cluster.access.kind === 'local-context') {
    deps.print(
      'Only processes that run where its kubeconfig is can reach it; what the stack deploys cannot.\n',
    );
  }
}

/** Rejects with `ApiError`: it cannot be reached, or names what rights are missing. */
async function check(cluster: RegisteredCluster, deps: CliDeps): Promise<void> {
  const api = new RestApi(deps.connect(cluster));
  try {
    await preflight(api);
  } finally {
    api.close();
  }
}

const alreadyThere = (name: ClusterName): CliError =>
  new CliError(`There is a cluster ${name} already: choose another name, or remove that one first.`);
