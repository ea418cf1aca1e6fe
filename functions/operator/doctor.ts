import pMap from 'p-map';
import type { ServiceView } from '#functions/local/service-view.ts';
import type { ClusterRegistry } from '#shared/clusters/registry.ts';
import type { Rulings } from '#shared/clusters/rulebook.ts';
import { errorMessage } from '#shared/error-message.ts';
import { asksLease } from '#shared/eviction/brake.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { modeOf } from '#shared/eviction/in-force.ts';
import { DEFAULT_POLICY, type Mode, type Policy } from '#shared/eviction/policy.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { textOf } from '#shared/kubernetes/api-json.ts';
import { isProven, PROVEN_KUBERNETES } from '#shared/kubernetes/proven-versions.ts';
import {
  missingRights,
  NEEDED_RIGHTS,
  nodeLeaseHint,
  type RightsReview,
  rightsNeededBy,
  TAKEOVER_RIGHTS,
} from '#shared/kubernetes/rights.ts';
import { isInForce } from '#shared/kubernetes/takeover.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { VERSION } from '#shared/version.ts';
import type { Account } from './account.ts';
import { alarmFindings, quotaFindings, versionFindings } from './account-findings.ts';
import { builtInOf } from './built-in.ts';
import { bad, type Finding, ok, type Told, warn } from './finding.ts';
import type { ContextFleet, Fleet } from './fleet.ts';
import type { LiveCluster } from './live-cluster.ts';
import { view } from './look.ts';
import { isOfRelay, type Need } from './needs.ts';
import { type FleetStatus, statusOf } from './status.ts';
import { type TakeoverState, takeoverState } from './takeover/state.ts';
import { takeoverFindings, type Wanted } from './takeover-findings.ts';

/** Clusters that are asked at a time. */
const PARALLEL_CLUSTERS = 8;
/** Clocks that are kept in step differ by milliseconds; the alarm of the stack rings from here on, too. */
const MAX_SKEW_MS = 1_000;
/** So many questions find it out, so far apart. */
const CLOCK_QUESTIONS = 12;
const CLOCK_QUESTION_MS = 130;
/** Messages in a queue that is keeping up. */
const MOST_WAITING = 1_000;

export interface DoctorDeps {
  readonly clock: Clock;
  readonly progress: (text?: string) => void;
}

/** What is well and what is not, of the fleet and of these clusters. What cannot be looked at is a finding. */
export async function examine(
  fleet: Fleet | ContextFleet,
  clusters: readonly ClusterName[],
  { clock, progress }: DoctorDeps,
): Promise<readonly Finding[]> {
  const seen = fleet.kind === 'context' ? undefined : await view(fleet, clusters, () => ({}), { clock });
  const status = seen && statusOf(seen);
  const ofFleet =
    fleet.kind === 'context'
      ? []
      : [...(status ? processFindings(status, seen.service) : []), ...(await examineFleet(fleet, clock))];
  let done = 0;
  const ofClusters = await pMap(
    clusters,
    async (cluster) => {
      const found = await examineCluster(fleet, cluster, status, clock);
      done += 1;
      progress(`Clusters looked at: ${done} of ${clusters.length}`);
      return found.map((finding): Finding => ({ cluster, ...finding }));
    },
    { concurrency: PARALLEL_CLUSTERS },
  );
  progress();
  return [...ofFleet, ...ofClusters.flat()];
}

async function examineFleet(fleet: Fleet, clock: Clock): Promise<readonly Told[]> {
  const groups = await Promise.all([
    looked('store', 'check the name, and your rights to it', async () => {
      const askedAt = clock.now();
      await fleet.rulebook.fleetStop();
      return [ok('store', `The ${fleet.where} answers within ${clock.now() - askedAt} ms.`)];
    }),
    fleet.registry ? examineRegistry(fleet.registry) : [],
    looked('identity', 'check your credentials', async () => {
      await fleet.operator();
      return [ok('identity', 'It is known who you are, as the audit has to.')];
    }),
    looked('queues', 'check your rights to its queues', async () => queueFindings(await fleet.backlog())),
    looked('dead letters', 'check your rights to its queues', async () => {
      const letters = await fleet.deadLetters.count();
      return letters ? deadLetterFindings(letters) : [];
    }),
    fleet.account ? examineAccount(fleet.account, fleet) : [],
  ]);
  return groups.flat();
}

const examineRegistry = (registry: ClusterRegistry): Promise<readonly Told[]> =>
  looked('registry', 'check your rights to the table', async () =>
    (await registry.list()).strays.map((stray) => bad('registry', stray, 'Delete it from the table.')),
  );

/** A question that fails is a finding itself. */
async function looked(
  what: Told['what'],
  fix: string,
  look: () => Promise<readonly Told[]>,
  told: typeof bad = bad,
): Promise<readonly Told[]> {
  try {
    return await look();
  } catch (error) {
    return [told(what, errorMessage(error), `${fix}.`)];
  }
}

/** Who may not look is told so: nothing is bad because of that. */
const SEE_ACCOUNT = 'Attach taintward-viewer of this release to your role, or look in the console of AWS';

async function examineAccount(account: Account, fleet: Fleet): Promise<readonly Told[]> {
  const leases = async () => {
    const all = (await fleet.clusters()).map((cluster) => fleet.leases.look(cluster));
    return (await Promise.all(all)).filter((lease) => lease !== undefined);
  };
  const groups = await Promise.all([
    looked(
      'versions',
      SEE_ACCOUNT,
      async () => {
        const held = (await leases()).filter(({ holder }) => holder !== undefined);
        return versionFindings(
          await account.release(),
          held.map(({ version }) => version),
        );
      },
      warn,
    ),
    looked(
      'quotas',
      SEE_ACCOUNT,
      async () => {
        const nodes = (await leases()).reduce((sum, lease) => sum + (lease.nodes ?? 0), 0);
        return quotaFindings(await account.quotas(), nodes);
      },
      warn,
    ),
    looked('alarms', SEE_ACCOUNT, async () => alarmFindings(await account.alarms()), warn),
  ]);
  return groups.flat();
}

/** Of the one process; a deployment has none. */
function processFindings(
  { process, needs, unknown }: FleetStatus,
  service: ServiceView | undefined,
): readonly Told[] {
  if (process === undefined) return [];
  if (!service) {
    const down = needs.filter(({ kind }) => kind === 'not-running' || kind === 'frozen');
    const silent = warn('process', unknown.join(' '), 'Ask again in some seconds.');
    return down.length === 0 ? [silent] : down.map((need) => needFinding('process', need));
  }
  const { version, startedAt } = service;
  const runs = ok('process', `It runs since ${new Date(startedAt).toISOString()}.`);
  if (version === VERSION) return [runs, ok('versions', `It is ${VERSION}, as this command is.`)];
  const says = `It is ${version}, and this command ${VERSION}.`;
  return [runs, warn('versions', says, 'Restart it, or use the command of its release.')];
}

const needFinding = (what: Told['what'], { text, remedy }: Need): Told => ({
  ...{ what, verdict: 'bad', says: text },
  ...(remedy === undefined ? {} : { fix: remedy }),
});

function queueFindings(backlog: ReadonlyMap<string, number> | undefined): readonly Told[] {
  if (!backlog) return [];
  const full = [...backlog].filter(([, count]) => count > MOST_WAITING);
  if (full.length === 0) return [ok('queues', 'Its queues are read as fast as they are written.')];
  return full.map(([queue, count]) =>
    warn(
      'queues',
      `${count} messages wait in ${queue}.`,
      'See the log of its function: it fails, is throttled, or has too little concurrency.',
    ),
  );
}

function deadLetterFindings(counts: ReadonlyMap<string, number>): readonly Told[] {
  if (counts.size === 0) return [ok('dead letters', 'There is none.')];
  return [...counts].map(([queue, count]) =>
    warn(
      'dead letters',
      `There are ${count} of ${queue}.`,
      'taintward dead-letters list says why; mend that, then taintward dead-letters redrive.',
    ),
  );
}

async function examineCluster(
  fleet: Fleet | ContextFleet,
  cluster: ClusterName,
  status: FleetStatus | undefined,
  clock: Clock,
): Promise<readonly Told[]> {
  const known = fleet.kind === 'context' ? undefined : await fleet.rulebook.read(cluster).catch(errorMessage);
  const rulings = typeof known === 'string' ? undefined : known;
  return [
    ...(typeof known === 'string'
      ? [bad('store', known, 'Upgrade this command, or apply its policy anew.')]
      : []),
    ...(status ? relayFindings(status, cluster) : []),
    ...(await looked('reach', 'Check its address, your credentials and the network', async () => {
      const agent = fleet.kind === 'context' ? undefined : await agentIn(fleet, cluster);
      return agent === undefined ? examineLive(fleet, cluster, rulings, clock) : [notEntered(agent)];
    })),
  ];
}

/** The agent that runs in a cluster; `undefined`: it is entered from outside. */
async function agentIn({ registry }: Fleet, cluster: ClusterName): Promise<string | undefined> {
  const access = (await registry?.get(cluster))?.access;
  return access?.kind === 'agent' ? access.agent : undefined;
}

const notEntered = (agent: string): Told =>
  ok(
    'reach',
    `Agent ${agent} runs in it, and nobody enters it from outside: doctor --context looks into it.`,
  );

/** Of who speaks for a cluster; of a process that is down only that is said. */
function relayFindings({ at, needs, clusters }: FleetStatus, cluster: ClusterName): readonly Told[] {
  const { hearing, heardAt = at } = clusters.find((each) => each.cluster === cluster) ?? {};
  const found = needs
    .filter((need) => need.cluster === cluster && isOfRelay(need.kind))
    .map((need): Told => {
      const finding = needFinding('relay', need);
      return need.kind === 'out-of-reach' ? { ...finding, verdict: 'warn' } : finding;
    });
  if (found.length > 0 || hearing !== 'live') return found;
  return [ok('relay', `It was heard ${Math.round((at - heardAt) / 1000)} s ago.`)];
}

async function examineLive(
  fleet: Fleet | ContextFleet,
  cluster: ClusterName,
  rulings: Rulings | undefined,
  clock: Clock,
): Promise<readonly Told[]> {
  const live = await fleet.cluster(cluster);
  try {
    const askedAt = clock.now();
    const version = textOf((await live.objects.get('/version'))?.['gitVersion']);
    const reached = ok(
      'reach',
      `Its API server answers you within ${clock.now() - askedAt} ms; it is ${version || 'of an unknown version'}.`,
    );
    const policy = rulings?.orders.policy?.read ?? DEFAULT_POLICY;
    const wanted = rulings && { policy, mode: modeOf(policy, clock.now()) };
    const groups = await Promise.all([
      looked('rights', 'Grant them in all namespaces', () => rightsFindings(fleet, live, policy)),
      looked('built-in', 'Grant yourself to list nodes and pods', () => evictorFindings(live, wanted, clock)),
    ]);
    return [reached, ...provenFindings(version), ...(await clockFindings(live)), ...groups.flat()];
  } finally {
    live.close();
  }
}

/** Only what is known not to be proven is told. */
function provenFindings(version: string): readonly Told[] {
  if (version === '' || isProven(version)) return [];
  return [
    warn(
      'versions',
      `It is Kubernetes ${version}, and this release is proven on ${PROVEN_KUBERNETES.join(' and ')} alone.`,
      'Let it observe first, and see that it would evict what you expect.',
    ),
  ];
}

async function rightsFindings(
  fleet: Fleet | ContextFleet,
  { api }: LiveCluster,
  policy: Policy,
): Promise<readonly Told[]> {
  const needs = [...NEEDED_RIGHTS, ...rightsNeededBy(policy).flatMap(({ rights }) => rights)];
  const missing = await missingRights(api, needs);
  const hints = asksLease({ policy }) ? await leaseFindings(api) : [];
  // Of a deployment, its functions have identities of their own.
  const whose = fleet.kind === 'deployed' ? 'You have' : 'These credentials have';
  if (missing.length === 0)
    return [ok('rights', `${whose} all rights that the service needs there.`), ...hints];
  const says = `${whose} not all rights that the service needs there: ${missing.join(', ')}.`;
  return fleet.kind === 'deployed'
    ? [
        warn(
          'rights',
          says,
          'Nothing, if its functions have them: their log would say cluster.access-denied otherwise.',
        ),
        ...hints,
      ]
    : [bad('rights', says, 'Grant them in all namespaces: cdk/rbac has the roles.'), ...hints];
}

/** Without the right to read Leases all goes as it went before anybody asked them: nothing is wrong, and something could be better. */
async function leaseFindings(api: RightsReview): Promise<readonly Told[]> {
  const hint = await nodeLeaseHint(api);
  return hint === undefined
    ? []
    : [
        warn(
          'rights',
          'These credentials may not read the Leases of nodes, which show whether one that is called unreachable is alive.',
          hint,
        ),
      ];
}

/** Answers tell the time to the second: a few of them, at different parts of a second, tell more. */
async function clockFindings({ api }: LiveCluster): Promise<readonly Told[]> {
  for (let asked = 0; api.skewMs === undefined && asked < CLOCK_QUESTIONS; asked++) {
    await api.allowed({ verb: 'list', resource: 'nodes' });
    await pause(CLOCK_QUESTION_MS);
  }
  const { skewMs } = api;
  if (skewMs === undefined) return [ok('clocks', 'How far its clock is from the one here is not known.')];
  const apart = `Its clock is ${Math.abs(Math.round(skewMs))} ms ${skewMs < 0 ? 'behind' : 'ahead of'} the one here.`;
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return [ok('clocks', apart)];
  return [
    warn(
      'clocks',
      apart,
      'Keep both in step (NTP): deadlines count from the API server’s moments, and fire by ours.',
    ),
  ];
}

/** Who evicts there, and whether somebody does. */
async function evictorFindings(
  { api, objects }: LiveCluster,
  wanted: Wanted | undefined,
  clock: Clock,
): Promise<readonly Told[]> {
  const [builtIn, takeover] = await Promise.all([
    builtInOf(objects),
    takeoverState(objects, clock).catch(hiddenTakeover),
  ]);
  if ('verdict' in takeover) return [builtInFinding(builtIn, wanted?.mode), takeover];
  return [
    builtInFinding(builtIn, wanted?.mode, takeover),
    ...takeoverFindings(takeover, wanted),
    ...(takeover.nodes ? takeoverRightsFindings(await missingRights(api, TAKEOVER_RIGHTS)) : []),
  ];
}

const takeoverRightsFindings = (missing: readonly string[]): readonly Told[] =>
  missing.length === 0
    ? []
    : [
        warn(
          'rights',
          `These credentials cannot renew the takeover at its nodes, or prove that it works: ${missing.join(', ')}.`,
          'Nothing, if the relay has others. Else taintward takeover apply, and bind the ClusterRole taintward-takeover to it.',
        ),
      ];

/** The service's own identity, by which some clusters are asked, may see none: nothing is wrong with that. */
function hiddenTakeover(error: unknown): Told {
  if (error instanceof ApiError && error.status === 403) {
    return ok(
      'takeover',
      'Whether it is taken over is not shown to these credentials: the group taintward-viewer of cdk/rbac/operators may see it.',
    );
  }
  return warn('takeover', errorMessage(error), 'Ask again, or see taintward takeover status.');
}

function builtInFinding(
  { state, evidence }: BuiltIn,
  mode: Mode | undefined,
  { nodes, pods, now = 0 }: Partial<TakeoverState> = {},
): Told {
  const by = `by ${evidence}`;
  const isTaken = nodes?.live !== undefined && isInForce(nodes.live, now);
  switch (state) {
    case 'on':
      if (mode !== 'enforce') return ok('built-in', `It is on (${by}), and evicts alone.`);
      if (isTaken) return ok('built-in', `It is on (${by}), and rests for the taints that are taken over.`);
      if (pods) return ok('built-in', `It is on (${by}), and waits longer for the pods that are taken over.`);
      return warn(
        'built-in',
        `It is on (${by}), and so are we: whoever is first evicts, with none of what the policy forbids.`,
        'Switch it off (--controllers=*,-taint-eviction-controller), or taintward takeover apply where that is impossible.',
      );
    case 'off':
      if (mode === 'enforce') return ok('built-in', `It is off (${by}), and we evict.`);
      if (mode === undefined) return ok('built-in', `It is off (${by}): somebody else has to evict.`);
      return bad(
        'built-in',
        `It is off (${by}), and the policy is ${mode}: nobody evicts.`,
        mode === 'paused'
          ? 'taintward resume, unless that is meant.'
          : 'taintward policy apply one of the mode enforce, unless that is meant.',
      );
    case 'unknown':
      return warn(
        'built-in',
        `Whether it runs is unknown: ${evidence}.`,
        'Look at the flags of kube-controller-manager, or ask who runs the control plane.',
      );
    default:
      return state satisfies never;
  }
}
