import { clusterName } from '#shared/eviction/identity.ts';
import type { Access } from '#shared/state/registry.ts';
import type { Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { CLIMATE_NAMES, CLIMATES, type Climate, type ClimateName } from './climates.ts';
import { Disturbances } from './disturbances.ts';
import { type Hooks, SOUND } from './fault.ts';
import { ForecastJudge, type ForecastPod } from './forecast-judge.ts';
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
import { MATCHING, openQueues, type Scene } from './scene.ts';
import { SeededRandom } from './seeded-random.ts';
import { runFunctions } from './simulated-functions.ts';
import { SimulatedRelays } from './simulated-relays.ts';
import { SimulatedRulesStore } from './simulated-rules-store.ts';
import { SimulatedScheduler } from './simulated-scheduler.ts';
import { runService } from './simulated-service.ts';
import { dynamoStorage, sqliteStorage } from './simulated-storage.ts';
import { SimulatedUser } from './simulated-user.ts';
import { SimulationClock, withSimulatedTime } from './simulation-clock.ts';
import { Story } from './story.ts';
import { Truth } from './truth.ts';
import { type Episode, Weather } from './weather.ts';

const START_AT: EpochMs = Date.UTC(2026, 0, 1);
const ACCESS: Access = { kind: 'local-context', context: 'simulated' };

export interface SimulationOptions {
  /** The climate; absent: a random one. */
  readonly climate?: ClimateName;
  /** True if clusters have owners who change their rules; absent: by chance. */
  readonly governed?: boolean;
  /**
   * True if control planes have a stale view, and call nodes unreachable that renew their Leases. Absent: no node has a Lease.
   */
  readonly stale?: boolean;
  /** A defect to plant; absent: none. */
  readonly fault?: Partial<Hooks>;
  /** Changed features of the climate. */
  readonly changed?: Partial<Climate>;
  /** The planned actions to leave out, by number. */
  readonly leftOut?: readonly number[];
  /**
   * The function that forecasts the outcome for pods; asking for forecasts does not affect the history. Absent: none are
   * requested.
   */
  readonly forecastPod?: ForecastPod;
}

export interface Simulated {
  readonly climate: ClimateName;
  /** The broken promises of the service; empty when all were kept. */
  readonly faults: readonly string[];
  /** The events, line by line. */
  readonly story: readonly string[];
  /** True if clusters had owners; `planned` is the number of planned actions. */
  readonly governed: boolean;
  readonly planned: number;
  /** The number of pods that the service evicted. */
  readonly evicted: number;
  /** The number of tests of each promise, and the comparisons with the naive model. */
  readonly tried: Tried;
  readonly compared: Compared;
  readonly paced: Paced;
  /** Deletions of pods whose workload had a limit. */
  readonly limited: number;
  /** With `forecastPod`: the wrong forecasts, and the number of correct ones by outcome. */
  readonly forecasts: {
    readonly broken: readonly string[];
    readonly correct: Readonly<Record<string, number>>;
  };
}

/** Plays the random history of a seed: the real handlers and relays in a simulated world with failures. */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<Simulated> {
  const random = new SeededRandom(seed);
  const clock = new SimulationClock(START_AT);
  // Owners have random numbers of their own, so that histories without owners stay the same.
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
  // Always draw this number, so that a replay with explicit options is the same history.
  const perhaps = owners.chance(0.5);
  const { governed = perhaps } = options;
  const fault = { ...SOUND, ...options.fault };
  const audience: Audience = {};
  const plans = new Plans(clock, options.leftOut);
  const { stale = false } = options;
  const staging = { story, governed, stale, fault, audience, plans };
  const scene = setScene({ clock, random, weather, disturbances }, staging);
  for (const cluster of scene.clusters) {
    await scene.storage.open.registry.add({ name: cluster.name, access: ACCESS, addedAt: clock.now() });
  }
  const [first] = scene.clusters;
  for (const cluster of scene.clusters) {
    new SimulatedUser(cluster, cluster === first ? climate.nodes : 2, scene);
  }
  if (first && scene.storage.sqlite) {
    runService(first, scene.storage.sqlite, scene);
  } else {
    runFunctions(scene);
    const relays = scene.clusters.map((cluster) => new SimulatedRelays(cluster, scene));
    if (first && relays[0]) new Operator(first, relays[0], scene);
  }
  const { forecastPod } = options;
  const forecastJudge = forecastPod && new ForecastJudge(scene, forecastPod);
  audience.forecastJudge = forecastJudge;
  const { rulesStore } = scene;
  const owned = rulesStore
    ? scene.clusters.map((cluster) => new Owner(cluster, rulesStore, owners, scene))
    : [];
  await clock.advanceTo(Math.max(...weather.episodes.map(({ to }) => to)));
  await clock.advanceTo(Math.max(weather.endAt, ...owned.map(({ endAt }) => endAt)) + climate.calmMs);
  await scene.judge.judgeEnd();
  forecastJudge?.judgeEnd();
  scene.storage.close();
  const forecasts = { broken: forecastJudge?.faults ?? [], correct: forecastJudge?.correct ?? {} };
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
    forecasts,
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

/** The observers. */
interface Audience {
  forecastJudge?: ForecastJudge | undefined;
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
  const storage = store === 'dynamodb' ? dynamoStorage(surroundings) : sqliteStorage(surroundings);
  const names = (neighbour ? ['c1', 'c2'] : ['c1']).map(clusterName);
  const rulesStore = governed ? new SimulatedRulesStore(names, clock) : undefined;
  const clusters = names.map((name): LiveCluster => {
    const truth = new Truth(name, MATCHING, disturbances);
    const witness: Witness = {
      node: (node, taints) => {
        const text = taints?.map(({ key, value, effect }) => `${key}=${value ?? ''}:${effect}`) ?? 'gone';
        story.add('node', { cluster: name, node, taints: text });
        judge.nodeIs(name, node, taints);
        audience.forecastJudge?.nodeChanged(name, node);
      },
      pod: (pod) => {
        const { uid, node, terminating, tolerations } = pod;
        judge.podIs(name, pod);
        audience.forecastJudge?.podChanged(uid);
        const text = tolerations.slice(-MAX_SHOWN).map(inShort);
        story.add('pod', { uid, node, terminating, tolerations: text });
      },
      mark: (pod, sent) => {
        const cluster = clusters.find((each) => each.name === name);
        if (cluster) judge.mark(cluster, pod, sent);
      },
      blocked: (uid) => judge.blocked(uid),
      deletion: (pod, meant, sent) => {
        story.add('deletion', { uid: pod.uid });
        const cluster = clusters.find((each) => each.name === name);
        if (cluster) judge.deletion(cluster, pod, meant, sent);
        if (!pod.terminating) audience.forecastJudge?.deletion(name, pod.uid, sent.sentAt);
      },
    };
    return new LiveCluster(name, clock, truth, witness, stale ? new NodeLeases() : undefined);
  });
  const judge = new Judge({ ...surroundings, storage, queues, clusters, rulesStore });
  const scheduler = new SimulatedScheduler(surroundings, queues.evictionsDue);
  judge.onAccused = (what) => story.add('broken', { what });
  story.onLogged = (event, fields) => judge.logged(event, fields);
  return {
    ...surroundings,
    clusters,
    storage,
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

/** The most tolerations of a pod that the story prints, the last ones. */
const MAX_SHOWN = 5;

const inShort = ({
  key = '',
  operator = '',
  value = '',
  effect = '',
  tolerationSeconds,
}: Toleration): string =>
  `${key}${operator === 'Exists' ? '' : ` ${operator}=${value}`}:${effect} ${tolerationSeconds ?? 'for ever'}`;
