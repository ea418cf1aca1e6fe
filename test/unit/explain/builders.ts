import { nodeName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { EvictionRecord, Partition, TimedTaint } from '#shared/eviction/records.ts';
import type { ForecastPod } from '#shared/explain/forecast.ts';
import { headline } from '#shared/explain/headline.ts';
import { known } from '#shared/explain/known.ts';
import { explainPod, type PodAnswer, type PodCase, type ServiceFacts } from '#shared/explain/pod.ts';
import { at, emptyPartition, ref, rules, tolerating } from '#test/unit/eviction/builders.ts';

/** The second at which every question is asked. */
export const NOW = 100;

/** Pod web-0, on the node since second 0, which tolerates the taint `a` for 60 seconds. */
export const aPod = (fields: Partial<ForecastPod> = {}): ForecastPod => ({
  uid: 'u1' as ForecastPod['uid'],
  namespace: 'shop',
  name: 'web-0',
  node: nodeName('n1'),
  podSince: at(0),
  tolerations: [tolerating('a', 60)],
  terminating: false,
  disrupted: false,
  owner: { kind: 'ReplicaSet', name: 'web-5d4f' },
  ...fields,
});

/** The taint `key`, on the node since the given second. */
export const since = (second: number, key = 'a', fields: Partial<TimedTaint> = {}): TimedTaint => ({
  key,
  effect: 'NoExecute',
  since: at(second),
  known: 'added',
  ...fields,
});

export const stored = (taints: readonly TimedTaint[], ...records: readonly EvictionRecord[]): Partition => ({
  ...emptyPartition,
  ...(taints.length > 0
    ? { node: { taints, version: { epoch: 1, sequence: 1 }, observedAt: at(NOW - 1) } }
    : {}),
  scheduled: new Map(records.map((record) => [record.uid, record])),
});

export const service = (fields: Partial<ServiceFacts> = {}): ServiceFacts => ({
  rules: known(rules),
  partition: known(emptyPartition),
  history: known([]),
  stuck: known([]),
  disconnection: known(undefined),
  ...fields,
});

export const ruled = (policy: Partial<Rules['policy']>, more: Partial<Rules> = {}): Rules => ({
  ...rules,
  ...more,
  policy: { ...rules.policy, ...policy },
});

/** Pod web-0 on a node with these taints, stored and live, in a cluster in enforce mode. */
export const aCase = (taints: readonly TimedTaint[], fields: Partial<PodCase> = {}): PodCase => ({
  now: at(NOW),
  cluster: ref.cluster,
  namespace: 'shop',
  name: 'web-0',
  pod: known(aPod()),
  workload: known(undefined),
  node: known({
    taints: taints.map(({ since: _since, known: _known, virtual: _virtual, ...taint }) => taint),
  }),
  service: service({ partition: known(stored(taints)) }),
  budgets: known([]),
  builtIn: known({ state: 'off', evidence: 'its flags' }),
  matching: rules.matching,
  ...fields,
});

/** The first line of an answer, with times in seconds. */
export const lineOf = (answer: PodAnswer): string =>
  headline(answer, (moment) => `${(moment - at(0)) / 1000}s`);

export const line = (question: PodCase): string => lineOf(explainPod(question));
