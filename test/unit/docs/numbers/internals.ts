import { deltaRetrySeconds } from '#functions/deltas/handler.ts';
import { UPKEEP_MS } from '#functions/service/service.ts';
import { REGISTRATION_MAX_AGE_MS } from '#shared/access/agent-of.ts';
import { SCHEDULE_LEAD_SECONDS } from '#shared/aws/aws-timers.ts';
import { MAX_DELAY_SECONDS } from '#shared/aws/limits.ts';
import { CALLS, CALLS_OF_CLUSTER } from '#shared/aws/relay/delta-batcher.ts';
import { MAX_BODY_BYTES } from '#shared/console/api-server.ts';
import { MAX_AGE_MS } from '#shared/console/fleet-api.ts';
import { MAX_LISTENERS } from '#shared/console/live.ts';
import { CONNECTIONS_OF_SESSIONS, MAX_HEADER_BYTES } from '#shared/console/server.ts';
import { LINK_MS } from '#shared/console/session.ts';
import { ANNOUNCED_COUNTDOWN_MS } from '#shared/engine/decide/apply-deltas.ts';
import { NODE_MAX_AGE_MS } from '#shared/engine/evict/evict-pod.ts';
import { MAX_AHEAD_MS as EVENTS_DELAY_MS } from '#shared/engine/evict/later-events.ts';
import { PARALLEL_EVICTIONS } from '#shared/engine/evict/pass.ts';
import { DISCONNECTED_MS, RIVAL_FOR_MS } from '#shared/engine/watch/cluster-relay.ts';
import { WAKE_MS } from '#shared/engine/watch/cluster-watch.ts';
import { OVER_BUDGET_MS } from '#shared/engine/watch/fleet.ts';
import { PAGE_SIZE, UNANSWERED } from '#shared/engine/watch/follow-nodes.ts';
import { OWN_WATCHES } from '#shared/engine/watch/follow-pods.ts';
import { LEASE_RENEW_MS } from '#shared/engine/watch/lease-manager.ts';
import { EVICTED_WITHIN_MS } from '#shared/engine/watch/lease-session.ts';
import { CHECK_PERMISSIONS_MS, PING_MS } from '#shared/engine/watch/permission-watch.ts';
import { GATHER_MS } from '#shared/engine/watch/removal-recorder.ts';
import { POLL_MS } from '#shared/engine/watch/rules-watch.ts';
import { BUDGET_RETRY_MS, MAX_BUDGET_RETRY_MS } from '#shared/eviction/budget.ts';
import { BEHIND_PATIENCE_MS } from '#shared/eviction/evaluate.ts';
import { DELTA_MAX_AGE_MS, RESYNC_MS } from '#shared/eviction/facts.ts';
import { PERMIT_LASTS_MS } from '#shared/eviction/permits.ts';
import { REARM_OVERDUE_MS } from '#shared/eviction/plan.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { RATE_PERMIT_LASTS_MS } from '#shared/eviction/rate.ts';
import { MAX_RETRY_AFTER_MS } from '#shared/eviction/retry.ts';
import { STUCK_AFTER_MS as STUCK_MS } from '#shared/eviction/stuck.ts';
import { TICKS_TO_BEGIN } from '#shared/http/connection.ts';
import { CONNECTIONS, TICK_MS } from '#shared/http/listener.ts';
import { ANSWER_BYTES, UNDER_WAY_BYTES } from '#shared/kubernetes/http/answer-limits.ts';
import { REVIVED_CHARACTERS } from '#shared/kubernetes/http/api-json.ts';
import { FAILURES_TO_OPEN, PAUSE_MS } from '#shared/kubernetes/http/breaker.ts';
import { CONNECT_TIMEOUT_MS } from '#shared/kubernetes/http/dial.ts';
import { MAX_CONCURRENT_STREAMS } from '#shared/kubernetes/http/multiplexed.ts';
import { SLICE_MS } from '#shared/kubernetes/http/pace.ts';
import { CALL_TIMEOUT_MS, MAX_CONCURRENT_CALLS, PAGE_TIMEOUT_MS } from '#shared/kubernetes/http/transport.ts';
import { DISCONNECTED_AFTER_MS, LEASE_TTL_MS, READ_MAX_AGE_MS } from '#shared/state/lease.ts';
import { RULES_MAX_AGE_MS } from '#shared/state/rules-store.ts';
import { ENDED_WINDOW_MS } from '#shared/state/store.ts';
import { HISTORY_DAYS } from '#shared/state/stored.ts';
import { ANSWERED_WITHIN_MS } from '#shared/time/stopping.ts';
import { SOME_MINUTES } from '../../../../cdk/alarms.ts';
import {
  FIRST_MS,
  FIRST_UNANSWERED_MS,
  LAST_MS,
  LEFT_ALONE_MS,
  lastEarly,
  MISSED_MS,
  RESTRICTED_MS,
  roundedUp,
  waitMs,
} from './laws.ts';
import { DAY_MS, MINUTE_MS, type Pages, SECOND_MS } from './stated.ts';

export const INTERNALS: Pages = {
  'docs/internals/design.md': [
    ['A call without an answer for {} counts', ANSWERED_WITHIN_MS],
    ['after a gap, and every {}, so', RESYNC_MS],
    ['in each invocation, at most {} before they use it', READ_MAX_AGE_MS],
    ['or one older than {}, decides nothing', DELTA_MAX_AGE_MS],
    ['If a relay sees no change for {} on its own', LEASE_TTL_MS],
    ['The holder measures its {} from', LEASE_TTL_MS],
    ['leaves a free cluster to others for {}.', OVER_BUDGET_MS],
    ['Up to {} calls per queue run in parallel, {} with deltas of one cluster', CALLS, CALLS_OF_CLUSTER],
    ['or in pages of {} if the server', PAGE_SIZE],
    ['Beyond {} nodes of a cluster, they share', OWN_WATCHES],
    ['{} share one item beside the lease', GATHER_MS],
    ['Pods that need {} more than their grace', STUCK_MS],
    ["the nodes of the last {}' evictions", EVICTED_WITHIN_MS],
    ['disconnected for {} hands the lease off', DISCONNECTED_MS],
    ['(both for {} after the last)', RIVAL_FOR_MS],
    ['checks its permissions every {} (', CHECK_PERMISSIONS_MS],
    ['the version every {}, because', PING_MS],
    ['rejected credentials within {}.', roundedUp(CHECK_PERMISSIONS_MS + LEASE_RENEW_MS, 5 * SECOND_MS)],
    ['they are read for {}, longer than a delta counts', ENDED_WINDOW_MS],
    ['for {} by default. Changes', HISTORY_DAYS * DAY_MS],
    ['through a cache of {}, and', RULES_MAX_AGE_MS],
    ['rules are less than {} old at each delete', RESTRICTED_MS],
    ['Relays read the rules of their clusters every {}, and', POLL_MS],
    ['Up to {}, a timer is a delayed SQS', MAX_DELAY_SECONDS * SECOND_MS],
    ['schedule aimed {} early', SCHEDULE_LEAD_SECONDS * SECOND_MS],
    ['at most {} old. `evict` forwards', REGISTRATION_MAX_AGE_MS],
    ['at most {} after the look was answered', NODE_MAX_AGE_MS],
    [
      '{} pods of a node are evicted in parallel, with at most {} calls',
      PARALLEL_EVICTIONS,
      MAX_CONCURRENT_CALLS,
    ],
    ['with the same preconditions and the same {}.', NODE_MAX_AGE_MS],
    ['**A write without an answer** in {} fails', CALL_TIMEOUT_MS],
    ['tried again after {}, doubled up to {} while', BUDGET_RETRY_MS, MAX_BUDGET_RETRY_MS],
    ['A permit expires after {}, or', RATE_PERMIT_LASTS_MS],
    ['It lasts for {}, after which a delete asks again', PERMIT_LASTS_MS],
    ['counts for the window and those {}.', PERMIT_LASTS_MS],
    ['newly due pods wait for the relay, for {} at most', BEHIND_PATIENCE_MS],
    [
      'Delays are 1, 2, 4, 8, and {}, then {} up to the {} failure, then 60, 120, 240, and {}.',
      ...[waitMs(5), waitMs(10), lastEarly(), LAST_MS],
    ],
    ['`Retry-After` is honored up to {}.', MAX_RETRY_AFTER_MS],
    ['beside others starts with {} again', FIRST_MS],
    [
      '{} where several calls got no answer, doubled up to {} for {} tries, and then up to {}.',
      ...[FIRST_UNANSWERED_MS, waitMs(10), lastEarly({ unanswered: true }), LAST_MS],
    ],
    ['{} after its first failure an eviction fails for good', DEFAULT_POLICY.giveUpAfterMs],
    ['ignored from then on, for {}', LEFT_ALONE_MS],
    ['and at most once in {}.', WAKE_MS],
    ['by its watches, which it tries every {}, and', UNANSWERED.longestMs],
    ['the first half hour of tries comes every {}.', waitMs(10)],
    [
      'Failed deltas are redelivered after {}, {}, {}, and {} seconds',
      ...[1, 2, 3, 4].map((receives) => deltaRetrySeconds(receives)),
    ],
    ['more than {} overdue and arms it again', REARM_OVERDUE_MS],
    ['removes a record {} after its deadline', MISSED_MS],
    ['armed from the store once {} instead', UPKEEP_MS],
    ['once no eviction runs, or after {}.', EVENTS_DELAY_MS],
    ['whose relay had no contact for {}.', DISCONNECTED_AFTER_MS],
  ],
  'docs/internals/architecture.md': [
    ['deadlines that are more than {} ahead, through', ANNOUNCED_COUNTDOWN_MS],
    ['sends the delete within {} of that look', NODE_MAX_AGE_MS],
  ],
  'docs/internals/kubernetes-http.md': [
    [
      'A call has {} from its turn on, a page of a list {}, and a connection {}.',
      ...[CALL_TIMEOUT_MS, PAGE_TIMEOUT_MS, CONNECT_TIMEOUT_MS],
    ],
    ['all answers from one server share {}.', UNDER_WAY_BYTES.cluster],
    ['in texts of up to {}.', REVIVED_CHARACTERS],
    ['Reading yields every {}, so', SLICE_MS],
    ['one HTTP/2 connection for up to {} requests', MAX_CONCURRENT_STREAMS],
    ['at most {} calls at a time, deletes first', MAX_CONCURRENT_CALLS],
    ['**{} on the socket.**', NODE_MAX_AGE_MS],
    ['opens after {} unanswered calls in a row** and rejects calls for {},', ...[FAILURES_TO_OPEN, PAUSE_MS]],
    ['lets one call through every {}.', PAUSE_MS],
    ['An object may have {}: a lower limit', ANSWER_BYTES.object],
  ],
  'docs/internals/evidence.md': [
    ['sends a delete [at most {}]', NODE_MAX_AGE_MS],
    ['| timers beyond {} |', MAX_DELAY_SECONDS * SECOND_MS],
  ],
  'docs/internals/release-checklist.md': [
    ['`Cluster without relay` fires only after {}.', SOME_MINUTES.points * MINUTE_MS],
    ['Beyond {} a timer is a schedule', MAX_DELAY_SECONDS * SECOND_MS],
  ],
  'docs/internals/decisions/ended-items.md': [
    ['the ENDED items of the last {}.', ENDED_WINDOW_MS],
    ['**Why {} are enough.**', ENDED_WINDOW_MS],
    ['two resyncs ({}) decides nothing', DELTA_MAX_AGE_MS],
  ],
  'docs/internals/decisions/evidence.md': [['wait for it, for {} at most', BEHIND_PATIENCE_MS]],
  'docs/internals/decisions/observe-first.md': [['at most {} before use', RULES_MAX_AGE_MS]],
  'docs/internals/decisions/own-rest-calls.md': [
    ['{} after its node was read, or not at all', NODE_MAX_AGE_MS],
    ['a connection for up to {} watches', MAX_CONCURRENT_STREAMS],
  ],
  'docs/internals/decisions/durable-functions.md': [['each delete looks at it, within {} |', RESTRICTED_MS]],
  'docs/internals/decisions/console.md': [
    ['counts once and for {})', LINK_MS],
    ['{} of body, {} connections, {} listeners', MAX_BODY_BYTES, CONNECTIONS, MAX_LISTENERS],
    [
      "{} are for sessions; a stranger's is closed when idle for {}, and",
      CONNECTIONS_OF_SESSIONS,
      TICKS_TO_BEGIN * TICK_MS,
    ],
    ['{} of them are read', MAX_HEADER_BYTES],
    ['at most once {} from a state directory, and every {} from', MAX_AGE_MS.local, MAX_AGE_MS.deployed],
  ],
};
