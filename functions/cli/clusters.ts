import { Argument, type Command } from 'commander';
import { agentClusterSchema } from '#shared/aws/agent-names.ts';
import {
  type ClusterName,
  type ClusterUids,
  isSameCluster,
  sameClusterText,
} from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Policy } from '#shared/eviction/policy.ts';
import { evictedNamespaces } from '#shared/kubernetes/permissions.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { RegistryAct } from '#shared/operations/acts/fleet-plan.ts';
import { noteAct } from '#shared/operations/acts/note-act.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { liveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { evictorPermissions } from '#shared/operations/look/evictor-permissions.ts';
import { pendingOf } from '#shared/operations/look/pending.ts';
import {
  type Access,
  type AssumedRole,
  type ByPart,
  type ClusterRegistry,
  ofPart,
  type RegisteredCluster,
} from '#shared/state/registry.ts';
import type { ClusterAct } from '#shared/state/rules-store.ts';
import { StoreError } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type AccessOptions, addAccessOptions, parseAccess } from './access-options.ts';
import { type CliDeps, CliError, mustConfirm, noSuchCluster, parseClusterName } from './command.ts';
import { type Column, linesText, listShown, outputOption, tableText, withExamples } from './output.ts';
import { printFleet, showFleet, withFleet } from './with-fleet.ts';

/** `taintward clusters`: manages registered clusters. */
export function addClustersCommand(program: Command, deps: CliDeps): void {
  const clusters = program.command('clusters').summary('Manage registered clusters');
  for (const addCommand of [addAddCommand, addListCommand, addShowCommand, addRemoveCommand])
    addCommand(clusters, deps);
}

function addAddCommand(clusters: Command, deps: CliDeps): void {
  const command = clusters
    .command('add')
    .summary('Register a cluster')
    .description('Register a cluster, after a check of its connection and permissions.')
    .addArgument(nameArgument());
  withExamples(
    addAccessOptions(command).option('--no-check', 'skip the check of connection and permissions'),
    'taintward clusters add prod --eks prod --region eu-west-1',
    'taintward clusters add edge --kubeconfig-secret arn:aws:secretsmanager:eu-west-1:111122223333:secret:taintward/edge',
    'taintward clusters add far --eks far --region eu-west-1 --relay-role-arn arn:aws:iam::111122223333:role/taintward-relay --evict-role-arn arn:aws:iam::111122223333:role/taintward-evict',
    'taintward clusters add closed --agent edge-1',
  ).action(async (name: ClusterName) => {
    const options = command.optsWithGlobals<AddOptions>();
    const access = parseAccess(options);
    const cluster = { name, access, addedAt: deps.clock.now() };
    await withFleet(command, deps, (fleet) => add(cluster, options, fleet, deps));
  });
}

type AddOptions = AccessOptions & { readonly check: boolean };

async function add(
  cluster: RegisteredCluster<Access>,
  options: AddOptions,
  fleet: Fleet,
  deps: CliDeps,
): Promise<void> {
  await printFleet(fleet, deps);
  const { name } = cluster;
  const effects = await registrationEffects(cluster, options.check, fleet, deps);
  await changeRegistry({ kind: 'add', to: cluster }, fleet, deps);
  deps.print(linesText([`Registered cluster ${name}. Taintward manages it within 30s.`, ...effects]));
}

/** Checks that a cluster can be registered. Rejects with `ApiError`, `CliError`, or `FleetError`. */
async function registrationEffects(
  cluster: RegisteredCluster<Access>,
  checks: boolean,
  fleet: Fleet,
  deps: CliDeps,
): Promise<readonly string[]> {
  const registry = registryOf(fleet);
  const { access } = cluster;
  if (access.kind === 'agent') refuseNameForAgent(cluster.name);
  if (await registry.get(cluster.name)) throw alreadyThere(cluster.name);
  const { policy } = (await fleet.rulesStore.read(cluster.name)).orders;
  const [found, ...hints] = checks
    ? await checked(cluster, policy?.read ?? DEFAULT_POLICY, fleet, deps)
    : ['Connection and permissions were not checked'];
  return [
    `${found}. To check the connection of its relay, run taintward status.`,
    ...hints,
    policy
      ? `The policy applied earlier under this name is in force: ${policy.read.mode}.`
      : 'The cluster is in observe mode: no pods are evicted until you apply a policy (taintward policy apply).',
    access.kind === 'agent' &&
      `Only agent ${access.agent} works in this cluster. Run the agent there, with CLUSTER=${cluster.name} (docs/how-to/run-an-agent.md).`,
    access.kind === 'local-context' &&
      'Only processes with access to its kubeconfig file can reach the cluster. The deployed stack cannot.',
  ].filter((text) => text !== false);
}

/**
 * Checks the identities that will manage the cluster. `evict` answers for itself; the relay can't before it holds the
 * cluster's lease. Rejects with `CliError` or `FleetError`.
 */
export async function checked(
  cluster: RegisteredCluster<Access>,
  policy: Policy,
  fleet: Fleet,
  { connect, clock, progress }: CliDeps,
): Promise<readonly [string, ...string[]]> {
  const { name, access } = cluster;
  if (access.kind === 'agent') return [await checkedAgent(access.agent, fleet)];
  // Lambda functions have no kubeconfig file, so only the processes of its host manage the cluster.
  const isHere = access.kind === 'local-context';
  const ofHost = { cluster: async () => liveCluster(connect(cluster, 'evict'), clock) };
  if (!isHere) progress('Asking evict');
  const checked = isHere
    ? undefined
    : fleet.checkAccess?.({ name, access, namespaces: evictedNamespaces(policy) });
  const evictors = isHere ? ofHost : { ...fleet, ...(checked ? { checkAccess: () => checked } : {}) };
  const [result, ...hints] = await evictorPermissions(evictors, name, policy, cluster);
  if (result.verdict !== 'ok')
    throw new CliError(`${result.message} ${result.remediation} To skip the check, specify --no-check.`);
  const answer = checked ? await checked : await identified(new RestApi(connect(cluster, 'evict')));
  if ('uids' in answer) await refuseTwin(name, answer.uids, fleet);
  return [
    isHere ? result.message.replace(/\.$/, '') : 'Connection and permissions of evict are verified',
    ...hints.map(({ remediation = '' }) => remediation),
  ];
}

const identified = async (api: RestApi) => ({ uids: await api.uids().finally(() => api.close()) });

/** Rejects with `CliError` if the cluster is managed under another name, or this name is that of another cluster. */
async function refuseTwin(name: ClusterName, uids: ClusterUids | undefined, fleet: Fleet): Promise<void> {
  for (const { name: other } of (await registryOf(fleet).list()).clusters) {
    const managed = (await fleet.leases.read(other))?.uids;
    if (other !== name && isSameCluster(managed, uids)) throw new CliError(sameClusterText(name, other));
    if (other === name && managed && uids && !isSameCluster(managed, uids))
      throw new CliError(
        `The access leads to another cluster than the one managed as ${name}. Register that cluster under another name.`,
      );
  }
}

/** Without access to the cluster, only the queue can be checked. Rejects with `CliError` or `FleetError`. */
async function checkedAgent(agent: string, fleet: Fleet): Promise<string> {
  if (await fleet.hasAgent?.(agent)) return `The queue of agent ${agent} exists`;
  throw new CliError(
    `Agent "${agent}" not found in this account and region. Deploy its stack first (docs/how-to/run-an-agent.md), or skip the check with --no-check.`,
  );
}

export function refuseNameForAgent(name: ClusterName): void {
  const { error } = agentClusterSchema.safeParse(name);
  if (error) throw new CliError(`The name ${name} ${error.issues[0]?.message}.`);
}

const alreadyThere = (name: ClusterName): CliError =>
  new CliError(`Cluster "${name}" already exists. Choose another name, or remove that cluster first.`);

function addListCommand(clusters: Command, deps: CliDeps): void {
  const command = clusters.command('list').summary('List registered clusters').addOption(outputOption());
  withExamples(command, 'taintward clusters list', 'taintward clusters list -o json').action(() =>
    showFleet(command, deps, async (fleet) => {
      const { clusters: found, strays } = await registryOf(fleet).list();
      const none = 'No clusters are registered. To register one, run taintward clusters add.';
      deps.complain(linesText(strays.map((stray) => `${stray} Delete it from the table.`)));
      return listShown(found, COLUMNS, none);
    }),
  );
}

const COLUMNS: readonly Column<RegisteredCluster>[] = [
  { head: 'NAME', of: ({ name }) => name },
  {
    head: 'ADDED',
    of: ({ addedAt }) => (addedAt === undefined ? '?' : new Date(addedAt).toISOString()),
  },
  { head: 'ACCESS', of: accessText },
];

function addShowCommand(clusters: Command, deps: CliDeps): void {
  const command = clusters
    .command('show')
    .summary('Show a registered cluster')
    .addArgument(nameArgument())
    .addOption(outputOption());
  withExamples(command, 'taintward clusters show prod').action((name: ClusterName) =>
    showFleet(command, deps, async (fleet) => {
      const cluster = await registryOf(fleet).get(name);
      if (!cluster) throw noSuchCluster(name);
      const text = () => tableText(COLUMNS.map((column) => [column.head, column.of(cluster)]));
      return { data: () => cluster, text };
    }),
  );
}

function addRemoveCommand(clusters: Command, deps: CliDeps): void {
  const command = clusters
    .command('remove')
    .summary('Remove a cluster from the registry')
    .description('Remove a cluster from the registry. The cluster itself is not changed.')
    .addArgument(nameArgument())
    .option('--yes', 'skip the confirmation when evictions are pending', false);
  withExamples(command, 'taintward clusters remove prod').action((name: ClusterName) =>
    withFleet<{ yes: boolean }>(command, deps, async (fleet, { yes }) => {
      await printFleet(fleet, deps);
      const from = await registryOf(fleet).get(name);
      if (!from) throw noSuchCluster(name);
      const loss = await lossText(name, fleet, deps.clock.now());
      if (loss !== undefined) {
        deps.print(linesText([loss]));
        await mustConfirm('Remove the cluster?', yes, deps);
      }
      await changeRegistry({ kind: 'remove', from }, fleet, deps);
      deps.print(`Removed cluster ${name} from the registry. ${REMOVED}\n`);
    }),
  );
}

export const REMOVED = 'Taintward stops managing it within 30s; its nodes and pods are not changed.';

/** `undefined`: the cluster has no pending evictions. */
export async function lossText(
  name: ClusterName,
  { store }: Pick<Fleet, 'store'>,
  now: EpochMs,
): Promise<string | undefined> {
  const outcome =
    'Once due, they fail as unregistered, with a dead letter for each node. If you register the cluster again, its relay sends everything again.';
  try {
    const { length } = await pendingOf(store, name, now);
    if (length === 0) return undefined;
    return `Cluster ${name} has ${length} pending ${length === 1 ? 'eviction' : 'evictions'}. ${outcome}`;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return `Cluster ${name} may have pending evictions, which can't be counted (${error.message.replace(/\.$/, '')}). ${outcome}`;
  }
}

/** Changes the registry, with an entry in the audit log. Rejects with `CliError` if it was changed meanwhile. */
export async function changeRegistry(
  act: RegistryAct,
  fleet: Fleet,
  deps: CliDeps,
  reason?: string,
): Promise<void> {
  const registry = registryOf(fleet);
  const { name } = act.kind === 'remove' ? act.from : act.to;
  const note = (kind: ClusterAct, message: string) => noteAct(fleet, name, kind, message, deps, reason);
  switch (act.kind) {
    case 'add':
      if ((await registry.add(act.to)) === 'exists') throw alreadyThere(name);
      return note('cluster-added', `registered the cluster: ${accessText(act.to)}`);
    case 'change':
      if ((await registry.replace(act.to)) === 'unknown') throw noSuchCluster(name);
      return note('cluster-changed', `changed the access of the cluster: ${accessText(act.to)}`);
    case 'remove':
      if ((await registry.remove(name)) === 'unknown') throw noSuchCluster(name);
      return note('cluster-removed', 'removed the cluster from the registry');
    default:
      return act satisfies never;
  }
}

function registryOf({ registry, where }: Fleet): ClusterRegistry {
  if (registry) return registry;
  throw new CliError(
    `An npm start manages the clusters that it was started with (${where}). For the clusters of a deployment, specify --table NAME.`,
  );
}

const nameArgument = (): Argument =>
  new Argument('<name>', 'cluster name in the fleet').argParser(parseClusterName);

export function accessText({ access }: RegisteredCluster): string {
  switch (access.kind) {
    case 'eks': {
      const role = access.role ? `, as ${textByPart(access.role, ({ arn }) => arn)}` : '';
      return `EKS cluster ${access.clusterName} in ${access.region}${role}`;
    }
    case 'kubeconfig-secret': {
      const context = access.context === undefined ? '' : `, context ${access.context}`;
      return `kubeconfig in ${textByPart(access.secretArn, (arn) => arn)}${context}`;
    }
    case 'local-context':
      return `context ${access.context} of ${access.kubeconfig ?? 'the default kubeconfig file'}`;
    case 'agent':
      return `agent ${access.agent}, in the cluster`;
    case 'unreadable':
      return access.reason;
    default:
      return access satisfies never;
  }
}

function textByPart<T extends string | AssumedRole>(given: ByPart<T>, text: (one: T) => string): string {
  const [relay, evict] = [text(ofPart(given, 'relay')), text(ofPart(given, 'evict'))];
  return relay === evict ? relay : `${relay} (relay) and ${evict} (evict)`;
}
