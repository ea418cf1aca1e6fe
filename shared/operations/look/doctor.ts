import pMap from 'p-map';
import { type ClusterFacts, CONDITIONS } from '#shared/conditions/conditions.ts';
import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Policy } from '#shared/eviction/policy.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import {
  type IneffectiveToleration,
  ineffectiveTolerations,
} from '#shared/explain/ineffective-tolerations.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import {
  isDenied,
  missingPermissions,
  TAKEOVER_PERMISSIONS,
  unlessDenied,
} from '#shared/kubernetes/permissions.ts';
import { projectTolerations } from '#shared/kubernetes/project.ts';
import { isProven, PROVEN_KUBERNETES } from '#shared/kubernetes/proven-versions.ts';
import { isInForce } from '#shared/kubernetes/takeover.ts';
import type { ClusterRegistry } from '#shared/state/registry.ts';
import { type StoredRules, stopsInForce } from '#shared/state/rules-store.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { once } from '#shared/time/cache.ts';
import type { Clock } from '#shared/time/clock.ts';
import { durationText } from '#shared/time/duration.ts';
import { pause } from '#shared/time/pause.ts';
import { VERSION } from '#shared/version.ts';
import type { Account } from '../fleet/account.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';
import type { ContextFleet, Fleet, ServiceAccount } from '../fleet/fleet.ts';
import { type LiveCluster, withCluster } from '../fleet/live-cluster.ts';
import { type TakeoverState, takeoverState } from '../takeover/state.ts';
import { alarmFindings, quotaFindings, versionFindings } from './account-findings.ts';
import { builtInOf } from './built-in.ts';
import {
  evictorPermissions,
  PARALLEL_CHECKS,
  reviewedBy,
  servicePermissions,
} from './evictor-permissions.ts';
import { bad, type ClusterFinding, type Finding, ok, warn } from './finding.ts';
import { type ReadDeps, type Snapshot, view } from './look.ts';
import { type FleetStatus, statusOf } from './status.ts';

/** Synchronized clocks differ by milliseconds. The stack's alarm has the same threshold. */
const MAX_SKEW_MS = 1_000;
/** Maximum number of requests to determine the clock skew, and their interval. */
const CLOCK_QUESTIONS = 12;
const CLOCK_QUESTION_MS = 130;

/** The mode that the cluster's owner set, and the stop in force. */
type Wanted = Pick<ClusterFacts, 'mode' | 'stop'>;

/** Checks the fleet and these clusters. A check that fails is a finding, too. */
export async function examine(
  fleet: Fleet | ContextFleet,
  clusters: readonly ClusterName[],
  { clock, progress }: Required<Pick<ReadDeps, 'clock' | 'progress'>>,
): Promise<readonly Finding[]> {
  const { status, findings = [] } =
    fleet.kind === 'context' ? {} : await examineFleet(fleet, clusters, clock);
  let done = 0;
  const ofClusters = await pMap(
    clusters,
    async (cluster) => {
      const found = await examineCluster(fleet, cluster, status, clock);
      done += 1;
      progress(`Examined ${done} of ${clusters.length} clusters`);
      return found.map((finding): Finding => ({ cluster, ...finding }));
    },
    { concurrency: PARALLEL_CHECKS },
  );
  return [...findings, ...ofClusters.flat()];
}

async function examineFleet(fleet: Fleet, clusters: readonly ClusterName[], clock: Clock) {
  const seen = await view(fleet, clusters, () => ({}), { clock });
  let backlog: Snapshot['backlog'];
  let deadLetters: Snapshot['deadLetters'];
  const groups = await Promise.all([
    checked('store', 'Check the name and your permissions', async () => {
      const requestedAt = clock.now();
      await fleet.rulesStore.fleetStop();
      return [ok('store', `The ${fleet.where} responds within ${clock.now() - requestedAt} ms.`)];
    }),
    fleet.registry ? examineRegistry(fleet.registry) : [],
    checked('identity', 'Check your credentials', async () => {
      await fleet.operator();
      return [ok('identity', 'Your identity is known, as the audit log requires.')];
    }),
    // A process that does not respond does not report its queues either.
    seen.silence !== undefined
      ? []
      : checked('queues', 'Check your permissions for its queues', async () => {
          backlog = await fleet.backlog();
          return backlog ? [ok('queues', 'No queue has a backlog.')] : [];
        }),
    checked('dead letters', 'Check your permissions for its queues', async () => {
      deadLetters = fleet.deadLetters ? await fleet.deadLetters.count() : new Map();
      return deadLetters ? [ok('dead letters', 'No dead-letter messages.')] : [];
    }),
    fleet.account ? examineAccount(fleet.account, fleet) : [],
  ]);
  const status = statusOf({ ...seen, ...defined({ backlog, deadLetters }) });
  const found = [...processFindings(seen), ...unknownFindings(status, seen), ...groups.flat()];
  return { status, findings: withConditions(status, undefined, found) };
}

const examineRegistry = (registry: ClusterRegistry): Promise<readonly ClusterFinding[]> =>
  checked('registry', 'Check your permissions for the table', async () =>
    (await registry.list()).strays.map((stray) => bad('registry', stray, 'Delete it from the table.')),
  );

/** Runs a check. If it fails, the error is the finding. */
async function checked(
  what: ClusterFinding['check'],
  fix: string,
  check: () => Promise<readonly ClusterFinding[]>,
  verdict: typeof bad = bad,
): Promise<readonly ClusterFinding[]> {
  try {
    return await check();
  } catch (error) {
    return [verdict(what, errorMessage(error), `${fix}.`)];
  }
}

/** This is a warning, because the caller's permissions don't affect the service. */
const SEE_ACCOUNT = 'Attach taintward-viewer of this release to your role, or use the AWS console';

async function examineAccount(account: Account, fleet: Fleet): Promise<readonly ClusterFinding[]> {
  const leases = once(async () => {
    const all = (await fleet.clusters()).map((cluster) => fleet.leases.read(cluster));
    return (await Promise.all(all)).filter((lease) => lease !== undefined);
  });
  const permitted = (what: ClusterFinding['check'], check: () => Promise<readonly ClusterFinding[]>) =>
    checked(what, SEE_ACCOUNT, check, warn);
  const groups = await Promise.all([
    permitted('versions', async () => {
      const held = (await leases()).filter(({ holder }) => holder !== undefined);
      const versions = held.map(({ version }) => version);
      return versionFindings(await account.release(), versions);
    }),
    permitted('quotas', async () => {
      const nodes = (await leases()).reduce((sum, lease) => sum + (lease.nodes ?? 0), 0);
      return quotaFindings(await account.quotas(), nodes);
    }),
    permitted('alarms', async () => alarmFindings(await account.alarms())),
  ]);
  return groups.flat();
}

/** An unknown fact is a warning, because it may hide a problem. */
const unknownFindings = ({ unknown }: FleetStatus, { silence }: Snapshot): readonly ClusterFinding[] =>
  unknown.map((sentence) =>
    warn(silence === undefined ? 'relay' : 'process', sentence, 'Run the command again in a few seconds.'),
  );

/** Checks the process of the whole service. A deployment has none. */
function processFindings({ process, service }: Snapshot): readonly ClusterFinding[] {
  if (process === undefined || !service) return [];
  const { version, startedAt } = service;
  const runs = ok('process', `Running since ${new Date(startedAt).toISOString()}.`);
  if (version === VERSION) return [runs, ok('versions', `The service and this command are ${VERSION}.`)];
  const sentence = `The service is ${version}, this command is ${VERSION}.`;
  return [runs, warn('versions', sentence, 'Restart the service, or use the command of its release.')];
}

/** What requires an action in `status` is bad here, too, in place of what a check found fine. */
function withConditions(
  { issues }: FleetStatus,
  cluster: ClusterName | undefined,
  checks: readonly ClusterFinding[],
): readonly ClusterFinding[] {
  const found = issues
    .filter((issue) => issue.cluster === cluster)
    .map(({ type, message, remediation }): ClusterFinding => {
      const { check } = CONDITIONS[type];
      return { check, verdict: 'bad', message, ...defined({ remediation }) };
    });
  const isShown = (check: Finding['check']) => found.some((condition) => condition.check === check);
  return [...found, ...checks.filter(({ check, verdict }) => verdict === 'bad' || !isShown(check))];
}

async function examineCluster(
  fleet: Fleet | ContextFleet,
  cluster: ClusterName,
  status: FleetStatus | undefined,
  clock: Clock,
): Promise<readonly ClusterFinding[]> {
  const known =
    fleet.kind === 'context' ? undefined : await fleet.rulesStore.read(cluster).catch(errorMessage);
  const storedRules = typeof known === 'string' ? undefined : known;
  return [
    ...(typeof known === 'string'
      ? [bad('store', known, 'Upgrade this command, or apply the policy again.')]
      : []),
    ...(status ? clusterFindings(status, cluster) : []),
    ...(await checked('registry', 'Check your permissions for the table', async () => {
      const agent = fleet.kind === 'context' ? undefined : await agentIn(fleet, cluster);
      if (agent !== undefined) return [notEntered(agent)];
      const groups = await Promise.all([
        asksEvict(fleet) ? evictorPermissions(fleet, cluster, policyOf(storedRules)) : [],
        checked('connection', 'Check its address, your credentials, and the network', () =>
          examineLive(fleet, cluster, storedRules, clock),
        ),
      ]);
      return groups.flat();
    })),
  ];
}

/** `undefined`: the cluster is accessed from outside. */
async function agentIn({ registry }: Fleet, cluster: ClusterName): Promise<string | undefined> {
  const access = (await registry?.get(cluster))?.access;
  return access?.kind === 'agent' ? access.agent : undefined;
}

const notEntered = (agent: string): ClusterFinding =>
  ok(
    'connection',
    `Agent ${agent} runs in the cluster, which has no access from outside. To examine it, run taintward doctor --context NAME.`,
  );

function clusterFindings(status: FleetStatus, cluster: ClusterName): readonly ClusterFinding[] {
  const { at, clusters } = status;
  const { connection, lastContactAt = at, pending } = clusters.find((each) => each.cluster === cluster) ?? {};
  const contact = ok('relay', `Last contact ${durationText(at - lastContactAt)} ago.`);
  const evictions = ok('evictions', 'No eviction failed, is overdue, or is stuck.');
  return withConditions(status, cluster, [
    ...(connection === 'connected' ? [contact] : []),
    ...(pending === undefined ? [] : [evictions]),
  ]);
}

const policyOf = (rules: StoredRules | undefined): Policy => rules?.orders.policy?.read ?? DEFAULT_POLICY;

const accountOf = (fleet: Fleet | ContextFleet): ServiceAccount | undefined =>
  fleet.kind === 'context' ? undefined : fleet.serviceAccount;

/** True if `evict` acts in the clusters of this fleet, whatever the caller of this process may do there. */
const asksEvict = (fleet: Fleet | ContextFleet): fleet is Fleet =>
  fleet.kind !== 'context' && fleet.checkAccess !== undefined;

async function examineLive(
  fleet: Fleet | ContextFleet,
  cluster: ClusterName,
  storedRules: StoredRules | undefined,
  clock: Clock,
): Promise<readonly ClusterFinding[]> {
  return withCluster(fleet, cluster, async (live) => {
    const requestedAt = clock.now();
    const version = textOf((await unlessDenied(live.objects.get('/version')))?.['gitVersion']);
    const reached = ok(
      'connection',
      `Its API server (${version || 'unknown version'}) responds within ${clock.now() - requestedAt} ms.`,
    );
    const policy = policyOf(storedRules);
    const [stop] = storedRules ? stopsInForce(storedRules, clock.now()) : [];
    const wanted = storedRules && { mode: policy.mode, ...defined({ stop }) };
    const groups = await Promise.all([
      asksEvict(fleet)
        ? []
        : checked('permissions', 'Grant the permissions in all namespaces', () =>
            servicePermissions(live, policy, accountOf(fleet)),
          ),
      checked('built-in', 'Grant yourself permission to list nodes and pods', () =>
        evictorFindings(live, wanted, clock, accountOf(fleet)),
      ),
      checked('tolerations', 'Grant yourself permission to list workloads', () =>
        tolerationFindings(live.objects),
      ),
    ]);
    return [reached, ...provenFindings(version), ...(await clockFindings(live)), ...groups.flat()];
  });
}

const WORKLOADS = ['Deployment', 'StatefulSet', 'DaemonSet'] as const;

/** Warns of ineffective tolerations in workloads, once for each rule. Kinds that may not be read are skipped. */
async function tolerationFindings(objects: ClusterObjects): Promise<readonly ClusterFinding[]> {
  const found: (IneffectiveToleration & { readonly workload: string })[] = [];
  for (const kind of WORKLOADS) {
    try {
      for await (const { metadata, spec } of objects.list(`/apis/apps/v1/${kind.toLowerCase()}s`)) {
        const { namespace, name } = fieldsOf(metadata);
        const pod = fieldsOf(fieldsOf(fieldsOf(spec)['template'])['spec']);
        const workload = `${kind} ${textOf(namespace)}/${textOf(name)}`;
        for (const ineffective of ineffectiveTolerations(kind, projectTolerations(pod['tolerations'])))
          found.push({ ...ineffective, workload });
      }
    } catch (error) {
      if (!(error instanceof ApiError) || ![403, 404].includes(error.status)) throw error;
    }
  }
  return [...Map.groupBy(found, ({ rule }) => rule).values()].flatMap((same) => {
    const [first] = same;
    if (!first) return [];
    const others = new Set(same.map(({ workload }) => workload)).size - 1;
    const more =
      others === 0 ? '' : ` The same applies to ${others} more ${others === 1 ? 'workload' : 'workloads'}.`;
    return warn('tolerations', `${first.workload}: ${first.message}${more}`, first.remediation);
  });
}

/** If the version is unknown, doesn't warn. */
function provenFindings(version: string): readonly ClusterFinding[] {
  if (version === '' || isProven(version)) return [];
  return [
    warn(
      'versions',
      `The cluster runs Kubernetes ${version}. This release is tested on ${PROVEN_KUBERNETES.join(' and ')} only.`,
      'Start in observe mode, and check that the recorded evictions are what you expect.',
    ),
  ];
}

/** Responses contain the time to the second, so requests at different fractions of it are more precise. */
async function clockFindings({ api }: LiveCluster): Promise<readonly ClusterFinding[]> {
  for (let requests = 0; api.skewMs === undefined && requests < CLOCK_QUESTIONS; requests++) {
    await unlessDenied(api.allowed({ verb: 'list', resource: 'nodes' }));
    await pause(CLOCK_QUESTION_MS);
  }
  const { skewMs } = api;
  if (skewMs === undefined) return [ok('clocks', 'The clock skew is unknown.')];
  const apart = `The clock of its API server is ${Math.abs(Math.round(skewMs))} ms ${skewMs < 0 ? 'behind' : 'ahead of'} the local clock.`;
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return [ok('clocks', apart)];
  return [
    warn(
      'clocks',
      apart,
      'Synchronize both clocks (NTP). Beyond 2 s, evictions are delayed by the difference. Beyond 30 s, they are held.',
    ),
  ];
}

/** Checks which controllers evict in a cluster, and that at least one does. */
async function evictorFindings(
  live: LiveCluster,
  wanted: Wanted | undefined,
  clock: Clock,
  account: ServiceAccount | undefined,
): Promise<readonly ClusterFinding[]> {
  const [builtIn, takeover] = await Promise.all([
    builtInOf(live.objects),
    takeoverState(live.objects, clock).catch(hiddenTakeover),
  ]);
  if ('verdict' in takeover) return [builtInFinding(builtIn, wanted), takeover];
  return [
    builtInFinding(builtIn, wanted, takeover),
    ...takeoverFindings(takeover),
    ...(takeover.nodes ? await takeoverPermissionFindings(live, account) : []),
  ];
}

/** Checks the takeover of a cluster, if there is one. */
export function takeoverFindings({ nodes, alarms, now }: TakeoverState): readonly ClusterFinding[] {
  const fix =
    'For details, run taintward takeover status. For the cause, look for takeover.heartbeat-suspended in the log of the relay.';
  if (alarms.length > 0) return alarms.map((alarm) => bad('takeover', alarm, fix));
  if (!nodes?.live || !isInForce(nodes.live, now)) return [];
  return [ok('takeover', 'The takeover is active: the built-in controller does not evict for its taints.')];
}

async function takeoverPermissionFindings(
  live: Pick<LiveCluster, 'api' | 'objects'>,
  account: ServiceAccount | undefined,
): Promise<readonly ClusterFinding[]> {
  try {
    const { review, whose } = reviewedBy(live, account);
    const missing = await missingPermissions(review, TAKEOVER_PERMISSIONS);
    if (missing.length === 0) return [];
    return [
      warn(
        'permissions',
        `${whose} cannot renew or verify the takeover: ${missing.join(', ')}.`,
        account
          ? 'Set rbac.takeover of the chart, or apply deploy/in-cluster/takeover.yaml.'
          : 'If the relay uses these credentials, run taintward takeover apply, and bind the ClusterRole taintward-takeover to it.',
      ),
    ];
  } catch (error) {
    // The check of all permissions has already reported this.
    if (isDenied(error)) return [];
    throw error;
  }
}

/** Some clusters are read with the service's identity, which may not see takeovers; that is no error. */
function hiddenTakeover(error: unknown): ClusterFinding {
  if (error instanceof ApiError && error.status === 403) {
    return ok(
      'takeover',
      'The credentials cannot read takeovers. The group taintward-viewer in cdk/rbac/operators can.',
    );
  }
  return warn('takeover', errorMessage(error), 'Run the command again, or run taintward takeover status.');
}

function builtInFinding(
  { state, evidence }: BuiltIn,
  { mode, stop }: Wanted = {},
  { nodes, now = 0 }: Partial<TakeoverState> = {},
): ClusterFinding {
  const source = `by ${evidence}`;
  const isTaken = nodes?.live !== undefined && isInForce(nodes.live, now);
  switch (state) {
    case 'on':
      if (mode !== 'enforce')
        return ok('built-in', `Enabled (${source}). Only the built-in controller evicts.`);
      if (isTaken)
        return ok('built-in', `Enabled (${source}). It does not evict for taints that are taken over.`);
      return warn(
        'built-in',
        `Enabled (${source}), as Taintward is. Whichever acts first evicts the pod, and the built-in controller ignores the policy.`,
        'Disable it (--controllers=*,-taint-eviction-controller). If you cannot, run taintward takeover apply.',
      );
    case 'off':
      if (mode === 'enforce' && stop)
        return bad(
          'built-in',
          `Disabled (${source}), and evictions are stopped: no controller evicts.`,
          'Unless this is intended, run taintward resume. To see the stops, run taintward holds.',
        );
      if (mode === 'enforce') return ok('built-in', `Disabled (${source}). Taintward evicts.`);
      if (mode === undefined) return ok('built-in', `Disabled (${source}). Another controller must evict.`);
      return bad(
        'built-in',
        `Disabled (${source}), and the policy mode is ${mode}: no controller evicts.`,
        'Unless this is intended, apply a policy with mode enforce.',
      );
    case 'unknown':
      return warn(
        'built-in',
        `Unknown whether it is enabled: ${evidence}.`,
        'Check the flags of kube-controller-manager, or ask the operator of the control plane.',
      );
    default:
      return state satisfies never;
  }
}
