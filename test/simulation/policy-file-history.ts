import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { StartPolicies } from '#functions/service/start-policies.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { ObjectRulesStore } from '#shared/state/objects/object-rules-store.ts';
import { PolicyError } from '#shared/state/policy-document.ts';
import type { FileRulesStore, RulesStore } from '#shared/state/rules-store.ts';
import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { StoreError } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';
import { CLIMATES, type Climate } from './climates.ts';
import { Disturbances } from './disturbances.ts';
import type { OtherHistory } from './history-kinds.ts';
import { PolicyFileJudge } from './policy-file-judge.ts';
import { Process, type Surroundings } from './process.ts';
import { SeededRandom } from './seeded-random.ts';
import { SimulationClock, withSimulatedTime } from './simulation-clock.ts';
import { Story } from './story.ts';
import { Weather } from './weather.ts';

export const CLUSTER = clusterName('in-cluster');
const START_AT: EpochMs = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
const EPISODE_MS = 10 * MINUTE_MS;
const CALM_MS = 4 * MINUTE_MS;
/** The longest time until a changed ConfigMap reaches the volume of a pod. */
const MOUNTED_MS = 90_000;
const REREAD_MS = 1_000;
/** The time for which the next leader observes an unchanged lease before it acquires the lease. */
const FAILOVER_MS = [10_000, 14_000] as const;
const MAX_RESTART_MS = 30_000;
const RETRY_MS = 2_000;

const CLIMATE: Climate = { ...CLIMATES.brief, trouble: 0.05, late: 0.05, spells: 1 };

/** Starts a process that has a policy file: the real implementation, or one with a planted defect. */
export type BeginPolicies = (
  file: string,
  deps: ConstructorParameters<typeof StartPolicies>[2],
) => Pick<StartPolicies, 'apply' | 'resume' | 'reread'>;

export const REAL: BeginPolicies = (file, deps) =>
  new StartPolicies({ enforce: false, file }, [CLUSTER], deps);

/**
 * Plays a history of a service with a policy file, in one process or as two replicas in a cluster. The file is edited, and users
 * pause, resume and apply other policies. Processes are killed and restart, and another replica becomes the leader, with an older
 * or newer file.
 */
export async function playPolicyFiles(seed: number, begin: BeginPolicies = REAL): Promise<OtherHistory> {
  const random = new SeededRandom(seed);
  const clock = new SimulationClock(START_AT);
  const directory = mkdtempSync(join(tmpdir(), 'policy-files-'));
  try {
    return await withSimulatedTime(clock, random, async () => {
      const episode = { from: START_AT, to: START_AT + EPISODE_MS };
      const disturbances = new Disturbances();
      const weather = new Weather(CLIMATE, [episode], { clock, random, disturbances });
      const history = new PolicyFileHistory({ clock, random, weather, disturbances }, directory, begin);
      await clock.advanceTo(episode.to + CALM_MS);
      return history.end();
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** A place where the service runs, with its own file. */
interface Replica {
  readonly name: string;
  readonly file: string;
  process: Process | undefined;
}

class PolicyFileHistory {
  readonly #surroundings: Surroundings;
  readonly #begin: BeginPolicies;
  readonly #story: Story;
  readonly #judge: PolicyFileJudge;
  readonly #database: DatabaseSync | undefined;
  readonly #objects = new FakeObjects();
  /** The rules store as users and the judge access it. */
  readonly #open: RulesStore;
  readonly #replicas: readonly [Replica, ...Replica[]];
  #leader: Replica | undefined;
  #texts = 0;

  constructor(surroundings: Surroundings, directory: string, begin: BeginPolicies) {
    const { clock, random } = surroundings;
    this.#surroundings = surroundings;
    this.#begin = begin;
    this.#story = new Story(clock);
    this.#judge = new PolicyFileJudge(clock, (what) => this.#story.add('broken', { what }));
    const isInCluster = random.chance(0.6);
    const database = isInCluster ? undefined : openRulesDatabase(':memory:');
    this.#database = database;
    this.#open = database
      ? new SqliteRulesStore({ database })
      : new ObjectRulesStore({ objects: this.#objects });
    const replica = (name: string) => ({ name, file: join(directory, name), process: undefined });
    this.#replicas = isInCluster ? [replica('a'), replica('b')] : [replica('a')];
    this.#plan();
  }

  #plan(): void {
    const { clock, random, weather } = this.#surroundings;
    const [{ from, to }] = weather.episodes as [{ from: EpochMs; to: EpochMs }];
    this.#edit();
    for (const replica of this.#replicas) this.#start(replica);
    const at = (happen: () => void) => clock.setAlarm(random.between(from + 5_000, to), happen);
    for (let count = random.between(2, 5); count > 0; count--) at(() => this.#edit());
    for (let count = random.between(3, 7); count > 0; count--) at(() => void this.#act());
    for (let count = random.between(2, 5); count > 0; count--)
      at(() => this.#kill(random.pick(this.#replicas)));
  }

  /** Writes the file; replicas in a cluster see the change sooner or later. */
  #edit(): void {
    const { clock, random } = this.#surroundings;
    this.#texts += 1;
    // The number of the text before the last one is possible too: a change is reverted.
    const number = this.#texts > 2 && random.chance(0.2) ? this.#texts - 2 : this.#texts;
    const mode = random.pick(['enforce', 'enforce', 'enforce', 'observe']);
    const text =
      random.chance(0.05) && this.#texts > 1
        ? 'mode: on\n'
        : `# ${number}\nmode: ${mode}\nreleaseRate: ${number}\n`;
    const editedAt = clock.now();
    this.#story.add('edited', { text });
    this.#judge.edited(text);
    for (const replica of this.#replicas) {
      const delayMs = this.#texts === 1 || this.#database ? 0 : random.between(0, MOUNTED_MS);
      clock.setAlarm(editedAt + delayMs, () => this.#mount(replica));
    }
  }

  /** Writes the current text into a replica's file. */
  #mount({ name, file }: Replica): void {
    const { clock } = this.#surroundings;
    const { text } = this.#judge.shows(name);
    writeFileSync(file, text);
    const now = new Date(clock.now());
    utimesSync(file, now, now);
    this.#story.add('mounted', { replica: name, text });
  }

  /** Performs the action of a user. */
  async #act(): Promise<void> {
    const { clock, random } = this.#surroundings;
    const anna = { rulesStore: this.#open, clock, actor: 'anna' };
    this.#texts += 1;
    const text = `# anna ${this.#texts}\nmode: ${random.pick(['observe', 'enforce'])}\n`;
    await perform({ kind: 'apply-policy', cluster: CLUSTER, text, reason: 'because' }, anna);
    await this.#read('a person');
  }

  #start(replica: Replica): void {
    const process = new Process(this.#surroundings);
    replica.process = process;
    this.#story.add('started', { replica: replica.name });
    void process.death.then(() => {
      this.#story.add('killed', { replica: replica.name });
      const { clock, random } = this.#surroundings;
      if (replica.process === process) replica.process = undefined;
      clock.setAlarm(clock.now() + random.between(500, MAX_RESTART_MS), () => this.#start(replica));
      if (this.#leader === replica) this.#failOver();
    });
    if (this.#replicas.length === 1) void this.#serve(replica, process, false);
    else if (this.#leader === undefined && this.#replicas.every((each) => each.process)) this.#lead(replica);
  }

  #failOver(): void {
    const { clock, random } = this.#surroundings;
    this.#leader = undefined;
    if (this.#replicas.length === 1) return;
    clock.setAlarm(clock.now() + random.between(...FAILOVER_MS), () => {
      const next = this.#replicas.find((each) => each.process);
      if (this.#leader) return;
      if (next) this.#lead(next);
      else this.#failOver();
    });
  }

  #lead(replica: Replica): void {
    const { process } = replica;
    if (!process) return;
    this.#leader = replica;
    this.#story.add('leads', { replica: replica.name });
    void this.#serve(replica, process, true);
  }

  /** Handles the policy file as `startLocalService` does. `led`: the process is one that takes over. */
  async #serve(replica: Replica, process: Process, led: boolean): Promise<void> {
    const { clock } = this.#surroundings;
    const rulesStore = this.#reached(process);
    const operator = { rulesStore, clock, actor: 'service' };
    const policies = this.#begin(replica.file, { operator, rulesStore, clock, log: this.#story.log });
    const taken = async (take: () => Promise<void>): Promise<void> => {
      const text = this.#judge.shownTo(replica.name);
      await take();
      if (!process.dead) this.#judge.taken(text);
    };
    if (!led) {
      try {
        await taken(() => policies.apply());
      } catch (error) {
        if (!isOurs(error)) this.#judge.accuse(`a process ended by ${String(error)}`);
        return process.die();
      }
    }
    for (let begun = !led; !process.dead; ) {
      try {
        await taken(() => (begun ? policies.reread() : policies.resume()));
        begun = true;
      } catch (error) {
        if (!isOurs(error)) this.#judge.accuse(`a task ended by ${String(error)}`);
      }
      await clock.sleep(begun ? REREAD_MS : RETRY_MS);
    }
  }

  /**
   * Returns the rules store as a process accesses it, in either deployment: with latency, failures, and answers that are late or
   * lost.
   */
  #reached(process: Process): FileRulesStore {
    const request = async <T>(perform: () => T | Promise<T>): Promise<T> =>
      process.request(this.#database ? 'store' : 'api', async () => {
        const answer = await perform();
        await this.#read('the service');
        return answer;
      });
    if (this.#database) {
      const failing = (error: unknown): never => {
        throw error instanceof StoreError ? error : new StoreError(String(error));
      };
      return throughout(new SqliteRulesStore({ database: this.#database }), (perform) =>
        request(perform).catch(failing),
      );
    }
    return new ObjectRulesStore({ objects: throughout(this.#objects, request) });
  }

  /** Notes a change of the policy. */
  async #read(speaker: 'a person' | 'the service'): Promise<void> {
    const { policy } = (await this.#open.read(CLUSTER)).orders;
    if (policy && this.#judge.states(policy.text, speaker))
      this.#story.add('said', { by: speaker, text: policy.text });
  }

  #kill({ process }: Replica): void {
    process?.die();
  }

  end(): OtherHistory {
    this.#judge.judgeEnd();
    this.#database?.close();
    const { faults, tried } = this.#judge;
    return { faults, tried, story: this.#story.lines };
  }
}

const isOurs = (error: unknown): boolean =>
  error instanceof StoreError || error instanceof PolicyError || error instanceof ApiError;

/** Returns an object whose methods all are requests, including iterations. */
function throughout<T extends object>(whole: T, request: (perform: () => unknown) => Promise<unknown>): T {
  return new Proxy(whole, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      if (name !== 'list') return (...args: unknown[]) => request(() => member.apply(target, args));
      return async function* (...args: unknown[]) {
        yield* (await request(() => Array.fromAsync(member.apply(target, args)))) as unknown[];
      };
    },
  });
}
