import { RETRY, UNREACHED_MS, WAIT_SECONDS } from '#functions/agent/due-source.ts';
import { PATIENCE as PROVING } from '#functions/cli/takeover/apply-command.ts';
import { deltaRetrySeconds } from '#functions/deltas/handler.ts';
import { REFRESH_MS as SECRET_REFRESH_MS } from '#shared/access/kubeconfig-secret-connection.ts';
import { RETRY_POLICY } from '#shared/aws/aws-timers.ts';
import { OUT_OF_SIGHT_RECEIVES } from '#shared/aws/consume.ts';
import { NODES_PER_MIB } from '#shared/aws/environment.ts';
import { MAX_BATCH_MESSAGES, MAX_DELAY_SECONDS } from '#shared/aws/limits.ts';
import { DELTA_MAX_RECEIVES, EVICTIONS_DUE_MAX_RECEIVES, QUEUES } from '#shared/aws/queue-set.ts';
import { PROBE_AGAIN } from '#shared/aws/relay/probing-prover.ts';
import { AUDIT_MS } from '#shared/console/answers.ts';
import { MAX_ROWS } from '#shared/console/api.ts';
import { MAX_AGE_MS, QUEUES_AGE_MS } from '#shared/console/fleet-api.ts';
import { PLACES_MS } from '#shared/console/groups.ts';
import { LINK_MS } from '#shared/console/session.ts';
import { RENDERED_EACH_MS } from '#shared/engine/clusters/probe-server.ts';
import { NODE_MAX_AGE_MS } from '#shared/engine/evict/evict-pod.ts';
import { WORK_BACKOFF } from '#shared/engine/timers.ts';
import { CLUSTER_LOAD } from '#shared/engine/watch/fleet.ts';
import { LEASE_READ_MS } from '#shared/engine/watch/lease-manager.ts';
import { FORGOTTEN_MS } from '#shared/engine/watch/lease-session.ts';
import { MAX_CONCURRENT_READS } from '#shared/engine/watch/stalled-nodes.ts';
import { CHECKED_MS, HEARTBEAT_MS, MISSING_MS, PROVEN_MS } from '#shared/engine/watch/takeover-heartbeat.ts';
import { BUDGET_RETRY_MS } from '#shared/eviction/budget.ts';
import { DELTA_MAX_AGE_MS, RESYNC_MS } from '#shared/eviction/facts.ts';
import { CALM_MS } from '#shared/eviction/guard.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { MAX_RETRY_AFTER_MS } from '#shared/eviction/retry.ts';
import { IGNORED_MS, MAX_SKEW_MS } from '#shared/eviction/skew.ts';
import { MAX_OVERDUE_MS } from '#shared/eviction/stalled.ts';
import { STUCK_AFTER_MS as STUCK_MS } from '#shared/eviction/stuck.ts';
import { TOGETHER_MS } from '#shared/explain/what-if.ts';
import { FAILURES_TO_OPEN, PAUSE_MS } from '#shared/kubernetes/http/breaker.ts';
import { DEFAULT_LAPSE_SECONDS } from '#shared/kubernetes/takeover.ts';
import { MAX_TRIES, STALE_LAPSES, TRY_MS } from '#shared/kubernetes/takeover-proof.ts';
import { DISCONNECTED_AFTER_MS, LEASE_TTL_MS, MAX_STUCK } from '#shared/state/lease.ts';
import { HISTORY_DAYS } from '#shared/state/stored.ts';
import {
  AT_EACH_TRY,
  DISCONNECTED_SECONDS,
  FULL_PERCENT,
  HALF_THE_TIME,
  LASTING,
  LATE_SECONDS,
  MAX_SKEW_SECONDS,
  MINUTES_ON_END,
  NOW_AND_THEN,
  OLDEST_DELTA_SECONDS,
  OLDEST_DUE_SECONDS,
  OLDEST_RECORD_MS,
  SILENT_MINUTES,
  SOME_MINUTES,
  UNREAD_MINUTES,
} from '../../../../cdk/alarms.ts';
import { defaultOf } from '../../../../cdk/config.ts';
import { EXPIRY_MAX_RECORD_AGE } from '../../../../cdk/functions.ts';
import { entryConstant } from '../../entry-constant.ts';
import {
  FAILOVER_MS,
  FIRST_MS,
  FIRST_UNANSWERED_MS,
  LAST_MS,
  LEFT_ALONE_MS,
  lastEarly,
  MISSED_MS,
  REPLICAS,
  RESTRICTED_MS,
  WATCHED_MS,
  waitMs,
} from './laws.ts';
import { DAY_MS, MINUTE_MS, type Pages, SECOND_MS } from './stated.ts';

const FAILS_AFTER_MS = DEFAULT_POLICY.giveUpAfterMs;
const LAPSE_MS = DEFAULT_LAPSE_SECONDS * SECOND_MS;

/** Alarms count data points of a minute. */
const someMinutes = SOME_MINUTES.points * MINUTE_MS;
const nowAndThen = [NOW_AND_THEN.points * MINUTE_MS, NOW_AND_THEN.outOf];
const atEachTry = [AT_EACH_TRY.outOf, AT_EACH_TRY.period?.toMilliseconds() ?? 0];

/** Time until a delta is a dead letter, in minutes that are rounded as people do. */
const deltaMinutes = Math.round(
  Array.from({ length: DELTA_MAX_RECEIVES }, (_, index) => deltaRetrySeconds(index + 1)).reduce(
    (sum, seconds) => sum + seconds,
  ) / 60,
);
/** Waits are shortened by up to half, so they take three quarters of their maximum on average. */
const dueDays = Math.round((0.75 * EVICTIONS_DUE_MAX_RECEIVES * WORK_BACKOFF.longestMs) / DAY_MS) * DAY_MS;

export const HOW_TO: Pages = {
  'docs/how-to/runbooks.md': [
    ['in {} of the last {} fewer relays ran', HALF_THE_TIME.points, HALF_THE_TIME.outOf * MINUTE_MS],
    ['lease of a registered cluster for {}, so', someMinutes],
    ['contact with a registered cluster for {}.', DISCONNECTED_SECONDS * SECOND_MS],
    ['pods are more than {} overdue', FORGOTTEN_MS],
    ['resets automatically after {} with', CALM_MS],
    ['the heartbeat timeout ({} by default)', LAPSE_MS],
    ['send deltas to a queue for {}.', someMinutes],
    [
      "for {}, the API server's clock differed by more than {} from",
      someMinutes,
      MAX_SKEW_SECONDS * SECOND_MS,
    ],
    ['Up to {} have no effect.', IGNORED_MS],
    ['Beyond {}, they are held', MAX_SKEW_MS],
    ['exceeded its capacity for {}, because', LASTING.points * MINUTE_MS],
    ['evicted more than {} after their deadline', LATE_SECONDS * SECOND_MS],
    [
      'did not answer {} calls of `evict` in a row, in both of the last {} {} periods. `evict` then tries it every {},',
      ...[FAILURES_TO_OPEN, ...atEachTry, PAUSE_MS],
    ],
    ['did not answer them, in both of the last {} {} periods.', ...atEachTry],
    ['retried after {} ({} without an answer)', FIRST_MS, FIRST_UNANSWERED_MS / SECOND_MS],
    ['with growing delays up to every {}. Evictions', LAST_MS],
    ['`Retry-After` is honored up to {}.', MAX_RETRY_AFTER_MS],
    ['`giveUpAfter` ({} by default)', FAILS_AFTER_MS],
    ['terminating for more than {} after their grace period, for {}.', STUCK_MS, LASTING.points * MINUTE_MS],
    [
      'message of this queue is {} old, or, in `evictions-due`, {} older than a timer may be',
      OLDEST_DELTA_SECONDS * SECOND_MS,
      (OLDEST_DUE_SECONDS - MAX_DELAY_SECONDS) * SECOND_MS,
    ],
    ['that for {} at least one message waited', MINUTES_ON_END.points * MINUTE_MS],
    ['that it had received {} times or more', OUT_OF_SIGHT_RECEIVES],
    ['This happened in both of the last {} {} periods', ...atEachTry],
    ['messages are retried within {}.', WORK_BACKOFF.longestMs],
    ['they become dead letters after about {}.', dueDays],
    ['not emptied its queue for {}.', SILENT_MINUTES * MINUTE_MS],
    ['crashed or timed out in {} of the last {}.', ...nowAndThen],
    ['throttled invocations in {} of the last {},', ...nowAndThen],
    ['Until the next resync, up to {} later,', RESYNC_MS],
    ['or of its index, in {} of the last {}.', ...nowAndThen],
    ['used {} of its memory or more for {}. If', FULL_PERCENT, LASTING.points * MINUTE_MS],
    ["not polled the table's stream for {}:", UNREAD_MINUTES * MINUTE_MS],
    ["records of the table's stream {} after they were written", OLDEST_RECORD_MS],
    ['every timer missed for {}, and', MISSED_MS],
    ['could not send to `evictions-due` for {}, and', RETRY_POLICY.MaximumEventAgeInSeconds * SECOND_MS],
    ['the next resync, within {} of its deadline', RESYNC_MS],
  ],
  'docs/how-to/recover.md': [
    [
      'retried after {}, then with growing delays: every {} up to the {} failure, finally every {}.',
      ...[FIRST_MS, waitMs(10), lastEarly(), LAST_MS],
    ],
    ['`Retry-After` is honored up to {}.', MAX_RETRY_AFTER_MS],
    ['`giveUpAfter`, {} by default', FAILS_AFTER_MS],
    ['terminates for more than {} after its grace period', STUCK_MS],
    ['lists up to {} of each cluster', MAX_STUCK],
    ['that failed {} times within some {} minutes', DELTA_MAX_RECEIVES, deltaMinutes],
    ['the next resync ({}) sends', RESYNC_MS],
    ['evictions that failed for {} |', FAILS_AFTER_MS],
    ['are ignored for {};', LEFT_ALONE_MS],
    ['tried immediately, for {} more days |', FAILS_AFTER_MS / DAY_MS],
    ['messages that failed {} times because of the table', EVICTIONS_DUE_MAX_RECEIVES],
    ['not recovered within {} |', EXPIRY_MAX_RECORD_AGE.toMilliseconds()],
    ['SQS returns at most {} messages of a node', MAX_BATCH_MESSAGES],
    ['a delta older than {} decides nothing', DELTA_MAX_AGE_MS],
    ['again when they start and every {}.', RESYNC_MS],
  ],
  'docs/how-to/investigate-evictions.md': [
    ['The eviction is retried every {}.', BUDGET_RETRY_MS],
    ['has been disconnected for {}, the first line', DISCONNECTED_AFTER_MS],
  ],
  'docs/how-to/stop-and-hold.md': [
    ['A stop takes effect within {}.', RESTRICTED_MS],
    ['as long as history: {} by default', HISTORY_DAYS * DAY_MS],
  ],
  'docs/how-to/move-to-enforce.md': [['A stop takes effect within {}.', RESTRICTED_MS]],
  'docs/how-to/preview-a-taint.md': [['deadlines are within {} of each other', TOGETHER_MS]],
  'docs/how-to/use-console.md': [
    ['once, in one browser, within {}.', LINK_MS],
    ['places that a cluster shows are up to {} old', PLACES_MS],
    ['saves the newest {} events of pods', MAX_ROWS],
    ['Of more than {} pods, it shows', MAX_ROWS],
    ['which has the last {}.', AUDIT_MS],
    ['On AWS, messages are counted once {}.', QUEUES_AGE_MS.deployed],
  ],
  'docs/how-to/monitor.md': [['Metrics are rendered at most once {}.', RENDERED_EACH_MS]],
  'docs/how-to/grant-cluster-access.md': [
    ['within {}, `taintward status` shows its last contact', WATCHED_MS],
    ['service reads it within {}, or immediately', SECRET_REFRESH_MS],
  ],
  'docs/how-to/install-in-cluster.md': [
    ['the next one leads within {}.', LEASE_READ_MS],
    ['sends the node again within {}.', RESYNC_MS],
  ],
  'docs/how-to/install-on-aws.md': [
    ['Within {}, the cluster is managed in **observe mode**', WATCHED_MS],
    ['a failed relay is replaced within {}.', FAILOVER_MS],
    [
      '`NODE_CAPACITY` ({}): the number of nodes of one relay, while other relays have room. A cluster counts as {} more nodes.',
      NODES_PER_MIB * Number(defaultOf('relayMemoryMiB')),
      CLUSTER_LOAD,
    ],
    ['it reads the table every {}; these', MAX_AGE_MS.deployed],
  ],
  'docs/how-to/migrate-a-deployment.md': [['within {}. While evictions are stopped', RESYNC_MS]],
  'docs/how-to/run-an-agent.md': [
    ['for deadlines beyond {}), and once STS', MAX_DELAY_SECONDS * SECOND_MS],
    ['the other takes over within {}.', FAILOVER_MS],
    ['Within {} after their deadline, time to live', MISSED_MS],
    ['installs {} replicas with the', REPLICAS],
    ['releases its lease; within {} |', entryConstant('functions/agent/main.ts', 'STOP_TIMEOUT_MS')],
    ['{} replicas make half a million requests', REPLICAS],
    ['are redelivered {} later, to', QUEUES.evictionsDue.functionTimeoutSeconds * SECOND_MS],
    ['up to every {}. After a failed call, and {} without an answer', RETRY.longestMs, UNREACHED_MS],
    ['polls its queue every {}:', WAIT_SECONDS * SECOND_MS],
  ],
  'docs/how-to/replace-built-in-controller.md': [
    ['evicts {} after Taintward', LAPSE_MS],
    ['renews `takeovers/live` every {},', HEARTBEAT_MS],
    ['renewed it in the last {}.', LEASE_TTL_MS],
    ['clock by {} at most.', MAX_SKEW_MS],
    ['none of its evictions is overdue by more than {}.', MAX_OVERDUE_MS],
    ['the lease has been held, for {}, these', MAX_OVERDUE_MS],
    ['it writes to the table once every {}, and', HEARTBEAT_MS],
    ['reads each of them once every {}, {} at a time', HEARTBEAT_MS, MAX_CONCURRENT_READS],
    ['or a storm of nodes, {}. Only then', MAX_OVERDUE_MS + LAPSE_MS],
    ['at least {} (the heartbeat timeout', LAPSE_MS],
    ['The built-in controller evicts {} after the last proof', LAPSE_MS],
    ['probes become rare, up to one in {}.', PROBE_AGAIN.longestMs],
    ['their times are {} heartbeat timeouts after and before', STALE_LAPSES],
    [
      'proves the takeover {} times in a row. If this does not succeed within {},',
      PROVING.proofs,
      PROVING.withinMs,
    ],
    ['and then every {}. It also', PROVEN_MS],
    ['Every {}, it repeats the first dry run', CHECKED_MS],
    ['`status` shows that within {}.', CHECKED_MS + HEARTBEAT_MS],
    ['does not succeed within {}, the relay', MAX_TRIES * TRY_MS],
    ['and retries every {}. Log', HEARTBEAT_MS],
    ['heartbeat is missing, {} after the last one', MISSING_MS],
    ['the relay reports that within {}, and', HEARTBEAT_MS],
  ],
};

export const START: Pages = {
  'README.md': [
    ['Retried for {}, then reported', FAILS_AFTER_MS],
    ['install-in-cluster.md), {} replicas |', REPLICAS],
    ['confirmed the eviction within the last {}.', NODE_MAX_AGE_MS],
    ['or fails after {} of retries', FAILS_AFTER_MS],
    ['stops all evictions within {}, and', RESTRICTED_MS],
  ],
};
