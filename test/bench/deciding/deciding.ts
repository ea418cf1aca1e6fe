import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NodeDelta, PodFacts, SeenTaint } from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { plan } from '#shared/eviction/plan.ts';
import { podDeadlines } from '#shared/eviction/pod-deadline.ts';
import { DEFAULT_POLICY, type Rules } from '#shared/eviction/policy.ts';
import type { Toleration } from '#shared/taints/taint.ts';
import { goProgram } from '#test/bench/go-program.ts';
import { NotHereError, type Scenario, takingTurns } from '#test/bench/scenario.ts';
import { type JsonToleration, type TaintedNode, taintedNodes } from './tainted-nodes.ts';

const NODES = 1_000;
const PODS_PER_NODE = 30;
const RUNS = 5;
const RUN_MS = 2_000;
const SHORT_RUN_MS = 200;
const UPSTREAM = 'upstream Go library';

const NOW = Date.UTC(2026, 10, 22);
const RULES: Rules = {
  policy: { ...DEFAULT_POLICY, mode: 'enforce' },
  ordersRevision: 1,
  policyRevision: 1,
  stops: [],
  holds: [],
  trips: [],
  guardRevision: 0,
  matching: { comparisonOperators: false },
};

/** The result by which both sides are compared; `seconds`: the sum over the pods that are evicted later. */
interface Decided {
  now: number;
  never: number;
  seconds: number;
}

interface Rate {
  readonly perSecond: number;
  readonly decided: Decided;
}

/** The delta that a relay sends for a node that was just tainted. */
interface TaintDelta extends NodeDelta {
  readonly taints: readonly SeenTaint[];
}

/** Measures the pods that the pure core decides on one core, beside the library of the built-in controller. */
export const deciding: Scenario = {
  about: `${(NODES * PODS_PER_NODE).toLocaleString('en')} pods of ${NODES.toLocaleString('en')} tainted nodes, decided on one core`,
  async run(report, { runs = RUNS, short }) {
    const nodes = taintedNodes(NODES, PODS_PER_NODE);
    const ms = short ? SHORT_RUN_MS : RUN_MS;
    const shared = nodes.map((node, index) => apply(node, index, sharing()));
    const apart = nodes.map((node, index) => apply(node, index, tolerationOf));
    const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-'));
    try {
      const file = join(dir, 'nodes.json');
      writeFileSync(file, JSON.stringify(nodes));
      const [upstream, missing] = upstreamOn(file, ms);
      const turns = await takingTurns<'shared' | 'upstream' | 'apart' | 'plans', Rate | undefined>(
        short ? 1 : runs,
        {
          shared: () => perSecond(shared, ms, deadlinesOf),
          upstream: () => upstream?.(),
          apart: () => perSecond(apart, ms, deadlinesOf),
          plans: () => perSecond(shared, ms, plansOf),
        },
      );
      const [found] = turns.shared;
      const [theirs] = turns.upstream;
      if (theirs) assert.deepEqual(found?.decided, theirs.decided, 'both decide the same');
      const evictionRate = (each: Rate | undefined) => (each ? [Math.round(each.perSecond)] : []);
      const peer = { name: UPSTREAM, values: turns.upstream.flatMap(evictionRate) };
      for (const [what, rates, note] of [
        ['pods decided', turns.shared, 'as deltas carry them: each list of tolerations once'],
        ['pods decided, each with a list of its own', turns.apart, 'as no delta carries them'],
        ['pods planned', turns.plans, 'with records, reasons and what changes; upstream does not'],
      ] as const) {
        report({
          what,
          unit: 'pods/s',
          peer,
          ours: rates.flatMap(evictionRate),
          ...(what === 'pods decided' ? { aim: { of: 'ratio', atLeast: 1 } } : {}),
          note: missing ?? note,
        });
      }
    } finally {
      rmSync(dir, { recursive: true });
    }
  },
};

/** Returns a function that runs the peer, or the reason for which there is none. */
function upstreamOn(file: string, ms: number): readonly [(() => Rate) | undefined, string?] {
  try {
    const program = goProgram(join(import.meta.dirname, 'upstream'));
    const run = (): Rate => {
      const { perSecond, ...decided } = JSON.parse(
        execFileSync(program, [file, `${ms}`], { encoding: 'utf8' }),
      );
      return { perSecond, decided };
    };
    return [run];
  } catch (error) {
    if (!(error instanceof NotHereError)) throw error;
    process.stderr.write(`  LEFT OUT: ${error.message}\n`);
    return [undefined, 'without its peer: there is no Go here'];
  }
}

function apply(
  { taints, pods }: TaintedNode,
  index: number,
  tolerations: (list: readonly JsonToleration[]) => readonly Toleration[],
): TaintDelta {
  return {
    kind: 'node',
    ref: { cluster: clusterName('bench'), node: nodeName(`node-${index}`) },
    version: { epoch: 1, sequence: index + 1 },
    observedAt: NOW,
    wake: false,
    taints: taints.map((taint) => ({ ...taint, known: 'added', seenAt: NOW })),
    pods: pods.map(
      (pod, number): PodFacts => ({
        uid: podUid(`${index}-${number}`),
        namespace: 'default',
        name: `pod-${index}-${number}`,
        podSince: NOW - 60_000,
        tolerations: tolerations(pod.tolerations),
      }),
    ),
  };
}

const tolerationOf = (list: readonly JsonToleration[]): readonly Toleration[] =>
  list.map(({ tolerationSeconds, ...rest }) => ({
    ...rest,
    ...(tolerationSeconds === undefined ? {} : { tolerationSeconds: BigInt(tolerationSeconds) }),
  }));

/** Parses each list once, because a node's message contains each list once. */
function sharing(): typeof tolerationOf {
  const known = new Map<readonly JsonToleration[], readonly Toleration[]>();
  return (list) => {
    const before = known.get(list) ?? tolerationOf(list);
    known.set(list, before);
    return before;
  };
}

/**
 * Returns the CPU milliseconds of this process so far, including its collector and compiler, regardless of other
 * processes.
 */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Decides all nodes repeatedly for `ms`; the rate is per second of CPU time. */
function perSecond(
  nodes: readonly TaintDelta[],
  ms: number,
  decide: (node: TaintDelta, decided: Decided) => void,
): Rate {
  const once = () => {
    const decided: Decided = { now: 0, never: 0, seconds: 0 };
    for (const node of nodes) decide(node, decided);
    return decided;
  };
  // Warm up, as the peer does.
  for (let round = 0; round < 3; round++) once();
  const pods = nodes.reduce((sum, node) => sum + node.pods.length, 0);
  const beganAt = cpuMs();
  let [decided, rounds] = [once(), 1];
  for (; cpuMs() - beganAt < ms; rounds++) decided = once();
  return { perSecond: (rounds * pods * 1000) / (cpuMs() - beganAt), decided };
}

function count(decided: Decided, at: number | undefined): void {
  if (at === undefined) decided.never += 1;
  else if (at > NOW) decided.seconds += (at - NOW) / 1000;
  else decided.now += 1;
}

function deadlinesOf({ taints, pods }: TaintDelta, decided: Decided): void {
  const present = taints.map((taint) => ({ ...taint, since: NOW }));
  const deadlineOf = podDeadlines(present, undefined, RULES);
  for (const pod of pods) count(decided, deadlineOf(pod.tolerations, pod.podSince)?.at);
}

function plansOf(delta: TaintDelta, decided: Decided): void {
  const partition = { ref: delta.ref, revision: 0, node: undefined, scheduled: new Map(), ended: new Map() };
  const { decisions } = plan(partition, delta, RULES, { now: NOW });
  decided.never += delta.pods.length - decisions.length;
  for (const decision of decisions) if ('record' in decision) count(decided, decision.record.dueAt);
}
