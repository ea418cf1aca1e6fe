import type { EpochMs } from '#shared/eviction/identity.ts';
import { CLIMATE_NAMES, CLIMATES, type ClimateName } from './climates.ts';
import { Judge } from './judge.ts';
import { MATCHING, type Scene, setScene } from './scene.ts';
import { SeededRandom } from './seeded-random.ts';
import { runFunctions } from './simulated-functions.ts';
import { runRelays } from './simulated-relays.ts';
import { SimulatedUser } from './simulated-user.ts';
import { SimulationClock, withSimulatedTime } from './simulation-clock.ts';
import { Story } from './story.ts';
import { Truth } from './truth.ts';
import { Weather } from './weather.ts';

const START_AT: EpochMs = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
/** Until then things happen and go wrong, and from then to the end nothing does. */
const CALM_AT = START_AT + 25 * MINUTE_MS;
const END_AT = CALM_AT + 70 * MINUTE_MS;
/** A resync that is under way at the end is over after so many seconds. */
const END_SECONDS = 60;

export interface Simulated {
  readonly climate: ClimateName;
  /** What broke a promise of the service; empty when all were kept. */
  readonly faults: readonly string[];
  /** What happened, line by line. */
  readonly story: readonly string[];
  /** Pods that the service evicted. */
  readonly evicted: number;
}

/** Plays the random history of a seed: the real handlers, relay view and outbox over a world that goes wrong. */
export async function simulate(seed: number): Promise<Simulated> {
  const random = new SeededRandom(seed);
  const clock = new SimulationClock(START_AT);
  return withSimulatedTime(clock, random, () => play(clock, random));
}

async function play(clock: SimulationClock, random: SeededRandom): Promise<Simulated> {
  const climate = random.pick(CLIMATE_NAMES);
  const weather = new Weather(CLIMATES[climate], random, clock, CALM_AT);
  const truth = new Truth(CLIMATES[climate].hearingMs, MATCHING);
  const story = new Story(clock, (line) => judge.hear(line));
  const scene = setScene({ clock, random, weather }, story.log);
  const judge = new Judge(scene, truth);
  witness(scene, truth, judge, story);
  new SimulatedUser(scene, CALM_AT);
  runFunctions(scene);
  runRelays(scene, truth, CALM_AT);
  await clock.advanceTo(END_AT);
  const busy = () => Object.values(scene.queues).some(({ size }) => size > 0);
  for (let seconds = 0; seconds < END_SECONDS && busy(); seconds++) await clock.advanceTo(clock.now() + 1000);
  await judge.judgeEnd();
  scene.store.close();
  return { climate, faults: judge.faults, story: story.lines, evicted: judge.evicted };
}

/** What happens in the cluster is kept apart from what the service makes of it. */
function witness({ clock, cluster }: Scene, truth: Truth, judge: Judge, story: Story): void {
  cluster.onNode = (name, taints) => {
    truth.nodeIs(clock.now(), name, taints);
    story.tell('node', { name, taints: taints?.map(({ key, value }) => `${key}=${value ?? ''}`) ?? 'gone' });
  };
  cluster.onDeserted = (name) => truth.nodeIsDeserted(clock.now(), name);
  cluster.onPod = (pod) => {
    truth.podIs(clock.now(), pod);
    const { uid, node, terminating } = pod;
    const tolerations = pod.tolerations.map((each) => `${each.key} ${each.tolerationSeconds ?? 'for ever'}`);
    story.tell('pod', { uid, node, terminating, tolerations });
  };
  cluster.onDeletion = (pod, meant) => {
    story.tell('deletion', { uid: pod.uid });
    judge.judgeDeletion(pod, meant);
  };
}
