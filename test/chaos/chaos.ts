import { setTimeout as passes } from 'node:timers/promises';
import { Account } from '#test/cluster/rig/account.ts';
import { quantile } from '#test/cluster/rig/figures.ts';
import { Gate } from '#test/cluster/rig/gate.ts';
import { runName, TestCluster } from '#test/cluster/rig/test-cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import { Wiretap } from '#test/cluster/rig/wiretap.ts';
import { SeededRandom } from '#test/simulation/seeded-random.ts';
import { behindGate } from './api-server.ts';
import { historyOf } from './history.ts';
import { deadlinesOf, judge, type Time, type Violation } from './judge.ts';
import { type Fault, inWords, type Plan, planOf, type Scale, Tolerations } from './plan.ts';
import { Users } from './users.ts';
import type { Form, Victim } from './victim.ts';
import { Weathered } from './weather.ts';

/** The longest retry interval of any component is five minutes. */
const QUIET_WITHIN_MS = 8 * 60_000;
const CHECKS_EVERY_MS = 1_000;
/** The run ends when nothing was due for this long: excess evictions happen in this time. */
const NOTHING_DUE_MS = 5_000;

/** The cluster, and the service's path to it. */
export interface Way {
  readonly cluster: TestCluster;
  readonly account: Account;
  readonly gate: Gate;
}

export interface Settings {
  readonly scale: Omit<Scale, 'killed' | 'stopped' | 'clocked'>;
  /** Starts the service on the cluster behind `way`. */
  readonly start: (way: Way) => Promise<Form>;
  /** The API server, if it belongs to this run. */
  readonly apiServer?: Victim;
  /** Receives the planned events. */
  readonly print: (line: string) => void;
}

export interface Spread {
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
}

/** The events of a run, and their effects on the service. Times are milliseconds. */
export interface Report {
  readonly seed: number;
  readonly nodes: number;
  readonly podsPerNode: number;
  readonly minutes: number;
  readonly done: Readonly<Record<string, number>>;
  readonly faults: Readonly<Record<string, number>>;
  readonly requests: number;
  readonly requestsHit: Readonly<Record<string, number>>;
  readonly pods: number;
  readonly evictions: number;
  readonly delayMs: Spread;
  /** The age of the last read of its node when a delete reached the proxy. */
  readonly readAgeMs: Spread;
  /** Pods that were due when their taint was removed, or when they came to tolerate it. */
  readonly saved: number;
  readonly savedAfterMs: number;
  /** The time from the last fault until nothing was due. */
  readonly settledAfterMs: number;
  readonly violations: readonly Violation[];
  readonly crashes: readonly string[];
}

/**
 * Executes the plan of a seed on a real API server, waits until all is quiet, and compares the events with the naive
 * rule.
 */
export async function chaos({ scale, start, apiServer, print }: Settings): Promise<Report> {
  await using opened = new AsyncDisposableStack();
  const cluster = opened.adopt(await TestCluster.open('KUBECONFIG', runName()), (opening) =>
    opening.close().catch((error: Error) => {
      // The run's own API server ends with all of its objects.
      if (!apiServer) print(`not everything was removed: ${error.message}`);
    }),
  );
  const account = await Account.create(cluster, 'service');
  const tap = opened.adopt(await Wiretap.open(cluster.connection), (each) => each.close());
  const gate = opened.adopt(await Gate.open(tap.connection), (each) => each.close());
  const form = opened.adopt(await start({ cluster, account, gate }), (each) => each.close());
  const victims = [...form.victims, apiServer ?? behindGate(gate)];
  const named = (able: (victim: Victim) => unknown) => victims.filter(able).map(({ name }) => name);
  const plan = planOf({
    ...scale,
    killed: named(({ kill }) => kill),
    stopped: named(({ pause }) => pause),
    clocked: named(({ setClock }) => setClock),
  });
  const random = new SeededRandom(scale.seed + 1);
  const users = new Users(cluster, random, new Tolerations(random, plan.longestSeconds));
  print(`making ${scale.nodes} nodes of ${scale.podsPerNode} pods`);
  await users.settle(plan);
  await form.ready();

  const weathered = new Weathered(new SeededRandom(scale.seed + 2));
  tap.carry = weathered.carry;
  const unreported: Time[] = [];
  const suffering = {
    victims: new Map(victims.map((each) => [each.name, each])),
    gate,
    weathered,
    unreported,
  };
  await play(plan, { users, suffering, print, endAt: scale.minutes * 60_000 });
  cluster.witness.check();

  print('quiet');
  const quietAt = Date.now();
  await form.ready();
  const history = () => historyOf(cluster.witness, { requests: [], unreported }, users.deleted, Date.now());
  let nothingSince: number | undefined;
  await until(
    'nothing is due',
    async () => {
      await passes(CHECKS_EVERY_MS);
      const anyDue = deadlinesOf(history()).some((at) => at < Infinity);
      nothingSince = anyDue ? undefined : (nothingSince ?? Date.now());
      return nothingSince !== undefined && Date.now() - nothingSince >= NOTHING_DUE_MS;
    },
    QUIET_WITHIN_MS,
  ).catch(() => print(`after ${QUIET_WITHIN_MS / 60_000} minutes something is still due`));
  cluster.witness.check();

  const passed = { requests: tap.requests, unreported };
  const found = judge(historyOf(cluster.witness, passed, users.deleted, Date.now()));
  const { evictions, violations, delayMs, savedAfterMs, readAgeMs } = found;
  return {
    ...scale,
    done: countOf(plan.deeds.map(({ act }) => act.kind)),
    faults: countOf(plan.faults.map(({ act }) => nameOf(act))),
    requests: tap.requests.length,
    requestsHit: Object.fromEntries(weathered.hits),
    pods: cluster.witness.pods.size,
    evictions,
    delayMs: spreadOf(delayMs),
    readAgeMs: spreadOf(readAgeMs),
    saved: savedAfterMs.length,
    savedAfterMs: Math.max(0, ...savedAfterMs),
    settledAfterMs: (nothingSince ?? Date.now()) - quietAt,
    violations,
    crashes: form.crashes,
  };
}

const spreadOf = (values: readonly number[]): Spread => ({
  p50: quantile(values, 0.5),
  p99: quantile(values, 0.99),
  longest: quantile(values, 1),
});

interface Suffering {
  readonly victims: ReadonlyMap<string, Victim>;
  readonly gate: Gate;
  readonly weathered: Weathered;
  /** The times in which the evicting process received no responses. */
  readonly unreported: Time[];
}

/** Executes all planned events at their times; resolves when all of them are over, and every process runs. */
async function play(
  plan: Plan,
  {
    users,
    suffering,
    print,
    endAt,
  }: {
    readonly users: Users;
    readonly suffering: Suffering;
    readonly print: Settings['print'];
    readonly endAt: number;
  },
): Promise<void> {
  const beganAt = Date.now();
  const ended = new AbortController();
  const replacing = users.replace(ended.signal);
  const doing: Promise<void>[] = [];
  const acts = [
    ...plan.deeds.map(({ at, act }) => ({ at, begin: () => users.do(act) })),
    ...plan.faults.map(({ at, act }) => ({
      at,
      begin: () => {
        print(`${((Date.now() - beganAt) / 1000).toFixed(1).padStart(7)} s  ${inWords(act)}`);
        return suffer(act, suffering);
      },
    })),
  ].toSorted((a, b) => a.at - b.at);
  for (const { at, begin } of acts) {
    await passes(Math.max(0, beganAt + at - Date.now()));
    doing.push(begin());
  }
  await passes(Math.max(0, beganAt + endAt - Date.now()));
  ended.abort();
  await Promise.all([...doing, replacing]);
}

async function suffer(fault: Fault, { victims, gate, weathered, unreported }: Suffering): Promise<void> {
  switch (fault.kind) {
    case 'weather':
      return weathered.last(fault);
    case 'cut': {
      const open = gate.shut();
      await passes(fault.durationMs);
      return open();
    }
    case 'kill': {
      const victim = victims.get(fault.victim);
      await victim?.kill?.();
      await passes(fault.durationMs);
      return victim?.start?.();
    }
    case 'clock': {
      const victim = victims.get(fault.victim);
      victim?.setClock?.(fault.aheadMs);
      await passes(fault.durationMs);
      return victim?.setClock?.(0);
    }
    case 'stop': {
      const victim = victims.get(fault.victim);
      const from = Date.now();
      victim?.pause?.();
      await passes(fault.durationMs);
      victim?.resume?.();
      if (victim?.receivesAnswers) unreported.push({ from, to: Date.now() });
      return;
    }
    default:
      return fault satisfies never;
  }
}

const nameOf = (fault: Fault): string => {
  switch (fault.kind) {
    case 'weather':
      return fault.sky;
    case 'cut':
      return 'every connection cut';
    default:
      return `${fault.victim}: ${fault.kind}`;
  }
};

function countOf(names: readonly string[]): Readonly<Record<string, number>> {
  const groups = Object.entries(Object.groupBy(names, (name) => name));
  return Object.fromEntries(groups.map(([name, each = []]) => [name, each.length]));
}
