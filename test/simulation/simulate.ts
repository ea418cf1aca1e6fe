import type { Access } from '#shared/clusters/registry.ts';
import { clusterName, type EpochMs } from '#shared/eviction/identity.ts';
import { CLIMATE_NAMES, CLIMATES, type Climate, type ClimateName } from './climates.ts';
import { Disturbances } from './disturbances.ts';
import { type Hooks, SOUND } from './fault.ts';
import { dynamoHouse, sqliteHouse } from './house.ts';
import { Judge } from './judge.ts';
import { LiveCluster } from './live-cluster.ts';
import { Operator } from './operator.ts';
import type { Surroundings } from './process.ts';
import { MATCHING, openQueues, type Scene } from './scene.ts';
import { SeededRandom } from './seeded-random.ts';
import { runFunctions } from './simulated-functions.ts';
import { SimulatedRelays } from './simulated-relays.ts';
import { SimulatedScheduler } from './simulated-scheduler.ts';
import { runService } from './simulated-service.ts';
import { SimulatedUser } from './simulated-user.ts';
import { SimulationClock, withSimulatedTime } from './simulation-clock.ts';
import { Story } from './story.ts';
import { Truth } from './truth.ts';
import { type Episode, Weather } from './weather.ts';

const START_AT: EpochMs = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
/** So long things happen and go wrong at a time. */
const EPISODE_MS = 25 * MINUTE_MS;
/** From the last of it to the end nothing does. */
const CALM_MS = 70 * MINUTE_MS;
const ACCESS: Access = { kind: 'local-context', context: 'simulated' };

export interface SimulationOptions {
  /** Played without: a random one. */
  readonly climate?: ClimateName;
  /** A defect to plant; absent: none. */
  readonly fault?: Partial<Hooks>;
}

export interface Simulated {
  readonly climate: ClimateName;
  /** What broke a promise of the service; empty when all were kept. */
  readonly faults: readonly string[];
  /** What happened, line by line. */
  readonly story: readonly string[];
  /** Pods that the service evicted. */
  readonly evicted: number;
}

/** Plays the random history of a seed: the real handlers and relays over a world that goes wrong. */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<Simulated> {
  const random = new SeededRandom(seed);
  const clock = new SimulationClock(START_AT);
  return withSimulatedTime(clock, random, () => play(clock, random, options));
}

async function play(
  clock: SimulationClock,
  random: SeededRandom,
  options: SimulationOptions,
): Promise<Simulated> {
  const picked = random.pick(CLIMATE_NAMES);
  const name = options.climate ?? picked;
  const climate: Climate = CLIMATES[name];
  const disturbances = new Disturbances();
  const weather = new Weather(climate, episodesOf(climate, random), { clock, random, disturbances });
  const story = new Story(clock);
  const scene = setScene({ clock, random, weather, disturbances }, story, { ...SOUND, ...options.fault });
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
  await clock.advanceTo(Math.max(...weather.episodes.map(({ to }) => to)));
  await clock.advanceTo(weather.endAt + CALM_MS);
  await scene.judge.judgeEnd();
  scene.house.close();
  return { climate: name, faults: scene.judge.faults, story: story.lines, evicted: scene.judge.evicted };
}

function episodesOf({ episodes, quietMs }: Climate, random: SeededRandom): readonly Episode[] {
  let from = START_AT;
  return Array.from({ length: episodes }, () => {
    const episode = { from, to: from + EPISODE_MS };
    from = episode.to + random.between(CALM_MS, CALM_MS + quietMs);
    return episode;
  });
}

function setScene(surroundings: Surroundings, story: Story, fault: Hooks): Scene {
  const { clock, weather, disturbances } = surroundings;
  const { store, neighbour } = weather.climate;
  const queues = openQueues(surroundings);
  const house = store === 'dynamodb' ? dynamoHouse(surroundings) : sqliteHouse();
  const clusters = (neighbour ? ['c1', 'c2'] : ['c1']).map(clusterName).map((name): LiveCluster => {
    const truth = new Truth(name, MATCHING, disturbances);
    return new LiveCluster(name, clock, truth, {
      node: (node, taints) => {
        const told = taints?.map(({ key, value, effect }) => `${key}=${value ?? ''}:${effect}`) ?? 'gone';
        story.tell('node', { cluster: name, node, taints: told });
      },
      pod: ({ uid, node, terminating, tolerations }) => {
        const told = tolerations
          .slice(-4)
          .map((each) => `${each.key} ${each.tolerationSeconds ?? 'for ever'}`);
        story.tell('pod', { uid, node, terminating, tolerations: told });
      },
      deletion: (pod, meant, sent) => {
        story.tell('deletion', { uid: pod.uid });
        const cluster = clusters.find((each) => each.name === name);
        if (cluster) judge.deletion(cluster, pod, meant, sent);
      },
    });
  });
  const judge = new Judge({ ...surroundings, house, queues, clusters });
  const scheduler = new SimulatedScheduler(surroundings, queues.evictionsDue);
  return { ...surroundings, clusters, house, queues, scheduler, log: story.log, story, judge, fault };
}
