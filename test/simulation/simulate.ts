import { clusterName } from '#shared/eviction/identity.ts';
import type { Access } from '#shared/state/registry.ts';
import type { Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { CLIMATE_NAMES, CLIMATES, type Climate, type ClimateName } from './climates.ts';
import { Disturbances } from './disturbances.ts';
import { type Hooks, SOUND } from './fault.ts';
import { dynamoHouse, sqliteHouse } from './house.ts';
import { Judge } from './judge.ts';
import { LiveCluster, type Witness } from './live-cluster.ts';
import type { Compared } from './naive-judge.ts';
import { NodeLeases } from './node-leases.ts';
import { Operator } from './operator.ts';
import { Owner } from './owner.ts';
import type { Paced } from './pace-judge.ts';
import { Plans } from './plans.ts';
import type { Surroundings } from './process.ts';
import type { Tried } from './promises.ts';
import { type Foresee, Prophet } from './prophet.ts';
import { MATCHING, openQueues, type Scene } from './scene.ts';
import { SeededRandom } from './seeded-random.ts';
import { runFunctions } from './simulated-functions.ts';
import { SimulatedRelays } from './simulated-relays.ts';
import { SimulatedRulebook } from './simulated-rules-store.ts';
import { SimulatedScheduler } from './simulated-scheduler.ts';
import { runService } from './simulated-service.ts';
import { SimulatedUser } from './simulated-user.ts';
import { SimulationClock, withSimulatedTime } from './simulation-clock.ts';
import { Story } from './story.ts';
import { Truth } from './truth.ts';
import { type Episode, Weather } from './weather.ts';

const START_AT: EpochMs = Date.UTC(2026, 0, 1);
const ACCESS: Access = { kind: 'local-context', context: 'simulated' };

export interface SimulationOptions {
  /** Played without: a random one. */
  readonly climate?: ClimateName;
  /** Whether clusters have owners who change what governs them; played without: perhaps. */
  readonly governed?: boolean;
  /** Whether control planes have a stale view, and call nodes unreachable that renew their Leases. Absent: no node has a Lease. */
  readonly stale?: boolean;
  /** A defect to plant; absent: none. */
  readonly fault?: Partial<Hooks>;
  /** A climate that is that one but for this. */
  readonly changed?: Partial<Climate>;
  /** What was planned and is left out, by its numbers. */
  readonly leftOut?: readonly number[];
  /** Whether it is asked what becomes of pods, by whichever function; who asks only looks on. Absent: no. */
  readonly foretold?: Foresee;
}

export interface Simulated {
  readonly climate: ClimateName;
  /** What broke a promise of the service; empty when all were kept. */
  readonly faults: readonly string[];
  /** What happened, line by line. */
  readonly story: readonly string[];
  /** Whether clusters had owners, and how many things were planned. */
  readonly governed: boolean;
  readonly planned: number;
  /** Pods that the service evicted. */
  readonly evicted: number;
  /** How often each promise was put to the test, and what was compared with the naive model. */
  readonly tried: Tried;
  readonly compared: Compared;
  readonly paced: Paced;
  /** Deletions of pods whose workload had a limit. */
  readonly limited: number;
  /** With `foretold`: what was told and happened otherwise, and how often what was told. */
  readonly prophecies: {
    readonly broken: readonly string[];
    readonly told: Readonly<Record<string, number>>;
  };
}

/** Plays the random history of a seed: the real handlers and relays over a world that goes wrong. */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<Simulated> {
  const random = new SeededRandom(seed);
  const clock = new SimulationClock(START_AT);
  // Of their own: a history without owners is what it was before there were any.
  const owners = new SeededRandom(~seed);
  return withSimulatedTime(clock, random, () => play(clock, random, owners, options));
}

async function play(
  clock: SimulationClock,
  random: SeededRandom,
  owners: SeededRandom,
  options: SimulationOptions,
): Promise<Simulated> {
  const picked = random.pick(CLIMATE_NAMES);
  const name = options.climate ?? picked;
  const climate: Climate = { ...CLIMATES[name], ...options.changed };
  if (climate.momentous) for (const each of [random, owners]) each.followMoments(() => clock.now());
  const disturbances = new Disturbances();
  const weather = new Weather(climate, episodesOf(climate, random), { clock, random, disturbances });
  const story = new Story(clock);
  // Drawn in any case: a history that is played again as it was is the same.
  const perhaps = owners.chance(0.5);
  const { governed = perhaps } = options;
  const fault = { ...SOUND, ...options.fault };
  const audience: Audience = {};
  const plans = new Plans(clock, options.leftOut);
  const { stale = false } = options;
  const staging = { story, governed, stale, fault, audience, plans };
  const scene = setScene({ clock, random, weather, disturbances }, staging);
  for (const cluster of scene.clusters) {
    await scene.house.open.registry.add({ name: cluster.name, access: ACCESS, addedAt: clock.now() });
  }
  const [first] = scene.clusters;
  for (const cluster of scene.clusters) {
    new SimulatedUser(cluster, cluster === first ? climate.nodes : 2, scene);
  }
  if (first && scene.house.sqlite) {
    runService(first, scene.house.sqlite, scene);
  } else {
    runFunctions(scene);
    const relays = scene.clusters.map((cluster) => new SimulatedRelays(cluster, scene));
    if (first && relays[0]) new Operator(first, relays[0], scene);
  }
  const { foretold } = options;
  const prophet = foretold && new Prophet(scene, foretold);
  audience.prophet = prophet;
  const { rulesStore } = scene;
  const owned = rulesStore
    ? scene.clusters.map((cluster) => new Owner(cluster, rulesStore, owners, scene))
    : [];
  await clock.advanceTo(Math.max(...weather.episodes.map(({ to }) => to)));
  await clock.advanceTo(Math.max(weather.endAt, ...owned.map(({ endAt }) => endAt)) + climate.calmMs);
  await scene.judge.judgeEnd();
  prophet?.judgeEnd();
  scene.house.close();
  const prophecies = { broken: prophet?.faults ?? [], told: prophet?.told ?? {} };
  const { faults, evicted, tried, compared, paced, limited } = scene.judge;
  return {
    climate: name,
    faults,
    get story() {
      return story.lines;
    },
    governed,
    planned: plans.planned,
    evicted,
    tried,
    compared,
    paced,
    limited,
    prophecies,
  };
}

function episodesOf(
  { episodes, episodeMs, calmMs, quietMs }: Climate,
  random: SeededRandom,
): readonly Episode[] {
  let from = START_AT;
  return Array.from({ length: episodes }, () => {
    const episode = { from, to: from + episodeMs };
    from = episode.to + random.between(calmMs, calmMs + quietMs);
    return episode;
  });
}

/** Who looks on. */
interface Audience {
  prophet?: Prophet | undefined;
}

interface Staging {
  readonly story: Story;
  readonly governed: boolean;
  readonly stale: boolean;
  readonly fault: Hooks;
  readonly audience: Audience;
  readonly plans: Plans;
}

function setScene(
  surroundings: Surroundings,
  { story, governed, stale, fault, audience, plans }: Staging,
): Scene & { readonly judge: Judge } {
  const { clock, weather, disturbances } = surroundings;
  const { store, neighbour } = weather.climate;
  const queues = openQueues(surroundings);
  const house = store === 'dynamodb' ? dynamoHouse(surroundings) : sqliteHouse(surroundings);
  const names = (neighbour ? ['c1', 'c2'] : ['c1']).map(clusterName);
  const rulesStore = governed ? new SimulatedRulebook(names, clock) : undefined;
  const clusters = names.map((name): LiveCluster => {
    const truth = new Truth(name, MATCHING, disturbances);
    const witness: Witness = {
      node: (node, taints) => {
        const told = taints?.map(({ key, value, effect }) => `${key}=${value ?? ''}:${effect}`) ?? 'gone';
        story.tell('node', { cluster: name, node, taints: told });
        judge.nodeIs(name, node, taints);
        audience.prophet?.nodeChanged(name, node);
      },
      pod: (pod) => {
        const { uid, node, terminating, tolerations } = pod;
        judge.podIs(name, pod);
        audience.prophet?.podChanged(uid);
        const told = tolerations.slice(-TOLD).map(inShort);
        story.tell('pod', { uid, node, terminating, tolerations: told });
      },
      mark: (pod, sent) => {
        const cluster = clusters.find((each) => each.name === name);
        if (cluster) judge.mark(cluster, pod, sent);
      },
      blocked: (uid) => judge.blocked(uid),
      deletion: (pod, meant, sent) => {
        story.tell('deletion', { uid: pod.uid });
        const cluster = clusters.find((each) => each.name === name);
        if (cluster) judge.deletion(cluster, pod, meant, sent);
        if (!pod.terminating) audience.prophet?.deletion(name, pod.uid, sent.sentAt);
      },
    };
    return new LiveCluster(name, clock, truth, witness, stale ? new NodeLeases() : undefined);
  });
  const judge = new Judge({ ...surroundings, house, queues, clusters, rulesStore });
  const scheduler = new SimulatedScheduler(surroundings, queues.evictionsDue);
  judge.onAccused = (what) => story.tell('broken', { what });
  story.onLogged = (event, fields) => judge.logged(event, fields);
  return {
    ...surroundings,
    clusters,
    house,
    queues,
    scheduler,
    rulesStore,
    plans,
    log: story.log,
    story,
    judge,
    fault,
  };
}

/** So many of a pod's tolerations are told, the last ones. */
const TOLD = 5;

const inShort = ({
  key = '',
  operator = '',
  value = '',
  effect = '',
  tolerationSeconds,
}: Toleration): string =>
  `${key}${operator === 'Exists' ? '' : ` ${operator}=${value}`}:${effect} ${tolerationSeconds ?? 'for ever'}`;
