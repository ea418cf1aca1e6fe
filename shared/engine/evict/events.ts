import pMap from 'p-map';
import { UnknownClusterError } from '#shared/access/registered-clusters.ts';
import { type Because, becauseOf, type Countdown, type News } from '#shared/engine/news.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { deltaId, type Version } from '#shared/eviction/facts.ts';
import type { NodeRef } from '#shared/eviction/identity.ts';
import type { Method } from '#shared/eviction/policy.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { gateText } from '#shared/explain/gate-text.ts';
import type { PodEvent } from '#shared/kubernetes/announcement.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { NAMESPACE_TERMINATING } from '#shared/kubernetes/http/eviction-refusal.ts';
import { isDenied } from '#shared/kubernetes/permissions.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { durationText } from '#shared/time/duration.ts';
import { timeText } from '#shared/time/time-text.ts';
import type { EvictDeps } from './ports.ts';

/** The built-in controller's reason for all its Events, so that alerts on it keep working. */
export const EVENT_REASON = 'TaintManagerEviction';

type EventPod = Pick<EvictionRecord, 'uid' | 'namespace' | 'name'>;

/** Reports that a pod is deleted. One per pod, however often its deletion is retried. */
export const markingForDeletion = (pod: EventPod): PodEvent =>
  upstream(pod, 'marking', `Marking for deletion Pod ${pod.namespace}/${pod.name}`);

/** Reports that a scheduled deletion was canceled. One per pod and delta that canceled it. */
export const cancellingDeletion = (pod: EventPod, version: Version): PodEvent =>
  upstream(pod, `cancelling/${deltaId(version)}`, `Cancelling deletion of Pod ${pod.namespace}/${pod.name}`);

/** Reports that a pod couldn't be deleted and that its retries are exhausted. */
export function gaveUpDeletion(pod: EventPod): PodEvent {
  const message = `Failed to delete Pod ${pod.namespace}/${pod.name}: retries exhausted. To retry, run "taintward retry"`;
  return { ...upstream(pod, 'gave-up', message), type: 'Warning' };
}

const upstream = (pod: EventPod, key: string, message: string): PodEvent =>
  about(pod, { key, reason: EVENT_REASON, message });

const PARALLEL_EVENTS = 16;
const TRIES = 3;
/** Namespaces where Events are denied now. This is logged once, because each eviction would repeat it. */
const denied = new WeakMap<KubernetesApi, Set<string>>();

/**
 * Posts Events for what happened by the time `at`, with a few attempts each. After no answer at all, the others are
 * dropped: every timeout would delay the node's next evictions. Never rejects: Events are optional.
 */
export async function postEvents(
  api: KubernetesApi,
  events: readonly PodEvent[],
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  at = clock.now(),
): Promise<void> {
  let silent: unknown;
  const deniedIn = denied.get(api) ?? new Set();
  denied.set(api, deniedIn);
  const post = async (event: PodEvent): Promise<void> => {
    const { namespace } = event.pod;
    for (let tries = 1; !silent; tries++) {
      try {
        await api.createEvent(event, at);
        deniedIn.delete(namespace);
        return;
      } catch (error) {
        // A namespace that is being deleted takes no Events.
        if (error instanceof ApiError && error.causes.includes(NAMESPACE_TERMINATING)) return;
        if (isDenied(error)) {
          if (!deniedIn.has(namespace)) logLost(event, error, log);
          deniedIn.add(namespace);
          return;
        }
        if (error instanceof ApiError && error.status === 0) silent = error;
        else if (tries === TRIES) return logLost(event, error, log);
      }
    }
    logLost(event, silent, log);
  };
  await pMap(events, post, { concurrency: PARALLEL_EVENTS });
}

/** Logs an Event that will not be posted. */
export function logLost({ pod, message }: PodEvent, reason: unknown, log: Log): void {
  log.warn('event.dropped', { namespace: pod.namespace, pod: pod.name, message, error: reason });
}

/** Posts the Events of decisions on a node. Events for a cluster that is no longer managed are logged as dropped. */
export async function announce(
  { cluster }: NodeRef,
  { canceled, countdowns }: News,
  deps: Pick<EvictDeps, 'clusters' | 'clock' | 'log' | 'rules'>,
): Promise<void> {
  const { policy } = countdowns.length > 0 ? await deps.rules(cluster) : {};
  const events = [
    ...canceled.flatMap(({ version, pods }) => pods.map((pod) => cancellingDeletion(pod, version))),
    ...countdowns.map((pod) => countingDown(pod, policy?.mode === 'observe')),
  ];
  try {
    await postEvents(await deps.clusters.api(cluster), events, deps);
  } catch (error) {
    if (!(error instanceof UnknownClusterError)) throw error;
    for (const event of events) logLost(event, error, deps.log);
  }
}

/*
 * Events about countdowns, in addition to the built-in controller's Events, whose texts and reason stay as they are. Each of
 * these has a reason of its own. One per pod and change.
 */

/** Returns the Event for a countdown that started, or whose deadline changed. `observed`: the pod won't be evicted. */
export function countingDown({ moved, ...pod }: Countdown, observed: boolean): PodEvent {
  const what = observed ? 'In enforce mode, the pod would' : 'The pod will';
  return about(pod, {
    key: `countdown/${pod.dueAt}`,
    reason: moved ? 'TaintwardEvictionRescheduled' : 'TaintwardEvictionScheduled',
    message: `${moved ? 'Eviction rescheduled. ' : ''}${what} be evicted at ${timeText(pod.dueAt)} because it ${becauseText(pod.because)}`,
  });
}

/**
 * Returns the Event for a due pod that is held. In observe mode it is unknown whether a budget would have blocked it.
 */
export function heldBack(record: EvictionRecord, gate: EvictionGate, method?: Method): PodEvent {
  if (gate.kind === 'observe') {
    const because = becauseText(record.causes.map(becauseOf));
    const unless = method?.kind === 'evict' ? ', unless a disruption budget had blocked it' : '';
    return about(record, {
      key: `would/${record.dueAt}`,
      reason: 'TaintwardWouldEvict',
      message: `In enforce mode, the pod would have been evicted at ${timeText(record.dueAt)} because it ${because}${unless}`,
    });
  }
  return about(record, {
    // A pod that is held, released, and held again has an Event for each hold.
    key: `held/${gate.kind}/${record.dueAt}/${record.held?.since}`,
    reason: 'TaintwardEvictionHeld',
    message: `Eviction held by ${gateText({ by: gate }, timeText)}. ${dueText(record)}`,
  });
}

/** Returns the Event for a due pod whose eviction the Eviction API temporarily rejects. */
export function blockedEviction(record: EvictionRecord, blocker: 'budget' | 'admission'): PodEvent {
  const how =
    blocker === 'budget' ? 'blocked by a disruption budget' : 'rejected by an admission webhook or policy';
  return about(record, {
    key: `blocked/${record.dueAt}`,
    reason: 'TaintwardEvictionBlocked',
    message: `Eviction ${how} and will be retried. ${dueText(record)}`,
  });
}

const dueText = ({ dueAt, causes }: EvictionRecord): string =>
  `The pod has been due since ${timeText(dueAt)} because it ${becauseText(causes.map(becauseOf))}`;

const about = (
  { uid, namespace, name }: EventPod,
  { key, reason, message }: Pick<PodEvent, 'key' | 'reason' | 'message'>,
): PodEvent => ({ pod: { namespace, name }, key: `${uid}/${key}`, type: 'Normal', reason, message });

const becauseText = (because: readonly Because[]): string =>
  because
    .map(({ taint, toleration, seconds }) =>
      toleration === undefined
        ? `does not tolerate ${taint}`
        : `tolerates ${taint} for ${durationText(seconds * 1000)} (tolerations[${toleration}])`,
    )
    .join(' and ');
