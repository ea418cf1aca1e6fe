import { REQUESTS_MS } from '#functions/service/service.ts';
import { DESCRIPTION_REFRESH_MS } from '#shared/access/eks-connection.ts';
import { SCHEDULE_LEAD_SECONDS } from '#shared/aws/aws-timers.ts';
import { RETENTION_SECONDS } from '#shared/aws/queue-set.ts';
import { LINK_MS } from '#shared/console/session.ts';
import { RENDERED_EACH_MS } from '#shared/engine/clusters/probe-server.ts';
import { ANNOUNCED_COUNTDOWN_MS } from '#shared/engine/decide/apply-deltas.ts';
import { NODE_MAX_AGE_MS } from '#shared/engine/evict/evict-pod.ts';
import { LEASE_READ_MS, LEASE_RENEW_MS } from '#shared/engine/watch/lease-manager.ts';
import { CHECK_MS as RELAY_CHECK_MS } from '#shared/engine/watch/lease-session.ts';
import { MAX_BYTES } from '#shared/engine/watch/memory-limits.ts';
import { GATHER_MS } from '#shared/engine/watch/removal-recorder.ts';
import { BUDGET_RETRY_MS } from '#shared/eviction/budget.ts';
import { BEHIND_PATIENCE_MS } from '#shared/eviction/evaluate.ts';
import { MAX_AHEAD_MS, RESYNC_MS } from '#shared/eviction/facts.ts';
import { DOWN_BEFORE_MS } from '#shared/eviction/gate.ts';
import { CALM_MS } from '#shared/eviction/guard.ts';
import { MAX_LEASE_MS } from '#shared/eviction/node-life.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { MAX_RETRY_AFTER_MS } from '#shared/eviction/retry.ts';
import { IGNORED_MS, MAX_SKEW_MS } from '#shared/eviction/skew.ts';
import { TICKS_TO_ASK, TICKS_TO_BEGIN, TICKS_TO_READ } from '#shared/http/connection.ts';
import { CONNECTIONS, TICK_MS } from '#shared/http/listener.ts';
import { ANSWER_BYTES, UNDER_WAY_BYTES } from '#shared/kubernetes/http/answer-limits.ts';
import { FAILURES_TO_OPEN, PAUSE_MS } from '#shared/kubernetes/http/breaker.ts';
import { KEPT_MS } from '#shared/kubernetes/http/clock-skew.ts';
import { CONNECT_TIMEOUT_MS } from '#shared/kubernetes/http/dial.ts';
import { GOODBYE_MS } from '#shared/kubernetes/http/multiplexed.ts';
import { CALL_TIMEOUT_MS } from '#shared/kubernetes/http/transport.ts';
import { DEFAULT_LAPSE_SECONDS } from '#shared/kubernetes/takeover.ts';
import { LEASE_TTL_MS } from '#shared/state/lease.ts';
import { MAX_GONE } from '#shared/state/objects/kubernetes-history.ts';
import { REMEMBERED_CHARS } from '#shared/state/objects/kubernetes-store.ts';
import { HISTORY_CHARS, MAX_CHARS } from '#shared/state/objects/node-eviction.ts';
import { MAX_SLOTS, RECENT_MS, SLOT_CHARS } from '#shared/state/objects/past-slots.ts';
import { RULES_MAX_AGE_MS } from '#shared/state/rules-store.ts';
import { HISTORY_DAYS } from '#shared/state/stored.ts';
import { ANSWERED_WITHIN_MS } from '#shared/time/stopping.ts';
import {
  FAILOVER_MS,
  FIRST_MS,
  LAST_MS,
  LEFT_ALONE_MS,
  LIMIT_BYTES,
  lastEarly,
  REPLICAS,
  REQUESTED_BYTES,
  RESTRICTED_MS,
  roundedUp,
  waitMs,
} from './laws.ts';
import { DAY_MS, MINUTE_MS, type Pages, SECOND_MS } from './stated.ts';

const { cluster, zone, customTaints } = DEFAULT_POLICY.guard;
const FAILS_AFTER_MS = DEFAULT_POLICY.giveUpAfterMs;
const HALF_HOUR_MS = 30 * MINUTE_MS;

export const CONCEPTS: Pages = {
  'docs/concepts/eviction-semantics.md': [
    ['pods wait for the relay, for {} at most.', BEHIND_PATIENCE_MS],
    ['deletes the pod at most {} after the node was read', NODE_MAX_AGE_MS],
    ['a countdown of more than {} started', ANNOUNCED_COUNTDOWN_MS],
    [
      'retried after {}, then with growing delays: up to {} until the {} failure, later up to {}.',
      ...[FIRST_MS, waitMs(10), lastEarly(), LAST_MS],
    ],
    ['`Retry-After` is honored up to {}.', MAX_RETRY_AFTER_MS],
    [
      'the node is tried every {} for {}, and at',
      waitMs(10),
      Math.round((lastEarly({ unanswered: true }) * waitMs(10)) / HALF_HOUR_MS) * HALF_HOUR_MS,
    ],
    [
      'fails seven times is done within {} minutes',
      roundedUp([1, 2, 3, 4, 5, 6, 7].reduce((sum, nth) => sum + waitMs(nth), 0) / MINUTE_MS, 1),
    ],
    ['{} after its first failure an eviction fails for good', FAILS_AFTER_MS],
    ['ignores the pod for {}, or until', LEFT_ALONE_MS],
    ['duration of more than {} | counts as one of {} |', MAX_LEASE_MS, MAX_LEASE_MS],
    ['A comparison counts for {}, so', KEPT_MS],
    ['| up to {} | none |', IGNORED_MS],
    ['| up to {} | The relay starts', MAX_SKEW_MS],
    ['| more than {} for certain, with every', MAX_SKEW_MS],
    ['does not count toward the {}. Meanwhile', FAILS_AFTER_MS],
    ['A time more than {} in the future is ignored', MAX_AHEAD_MS],
    ['Retried for {}, then a dead letter.', FAILS_AFTER_MS],
    ['At a failover, this lasts for up to {}.', FAILOVER_MS],
  ],
  'docs/concepts/guard.md': [
    ['were down for {}** before', DOWN_BEFORE_MS],
    ['of all nodes | {} % and {} nodes, or all nodes |', cluster?.percent ?? 0, cluster?.nodes ?? 0],
    ['| {} % and {} nodes | the same, on the nodes', zone?.percent ?? 0, zone?.nodes ?? 0],
    ['any other key within {}, and', customTaints?.windowMs ?? 0],
    [
      'of all nodes | {} % and {} nodes | evictions for taints',
      customTaints?.percent ?? 0,
      customTaints?.nodes ?? 0,
    ],
    ['earlier nodes are held within {}.', RESTRICTED_MS],
    ['Tripped --> Watching: {} below half', CALM_MS],
    ['Released --> Watching: {} of recovery', CALM_MS],
    ['fail again within {}. It trips', CALM_MS],
    ['is reached after {} of recovery', CALM_MS],
    ['resets automatically** after {} with', CALM_MS],
    ['restarts the {}.', CALM_MS],
  ],
  'docs/concepts/high-availability.md': [
    ['This installs {} replicas with the', REPLICAS],
    ['requests {} and', REQUESTED_BYTES],
    ['sets a limit of {}, half', LIMIT_BYTES],
    ['{} replicas write only the lease every {}, and', REPLICAS, LEASE_RENEW_MS],
    ['pods that ended in the last {} (UIDs and times), up to {} objects', RECENT_MS, MAX_SLOTS],
    ['| the leader, and its report on the cluster | every {} |', LEASE_RENEW_MS],
    ['times when the last {} evicted pods were removed | at most every {} during', MAX_GONE, GATHER_MS],
    ['objects have {} at most, history {};', SLOT_CHARS, HISTORY_CHARS],
    ["The node's object exceeds {}, with", MAX_CHARS],
    ['- {} objects are full of pods that ended in the last {}:', MAX_SLOTS, RECENT_MS],
    ['UIDs of the last {} are always kept', RECENT_MS],
    [
      'The leader renews it every {}. A standby that sees it unchanged for {}, by its own',
      LEASE_RENEW_MS,
      LEASE_TTL_MS,
    ],
    [
      'leads at most {} after the last renewal, and within {} after a leader that was stopped',
      LEASE_TTL_MS + LEASE_READ_MS,
      LEASE_READ_MS,
    ],
    ['The age must be less than {} by', LEASE_TTL_MS],
    ['a delete at most {} after it read', NODE_MAX_AGE_MS],
    ['lease failed, or has no answer for {}.', ANSWERED_WITHIN_MS],
    ['a standby leads within {}, and every', FAILOVER_MS],
    ['and every {} of a taint add', RESYNC_MS],
    ['The leader caches {} of objects', REMEMBERED_CHARS],
    ['the leader takes them within {}.', REQUESTS_MS],
  ],
  'docs/concepts/isolation.md': [
    ['messages arrive {} early and are forwarded', SCHEDULE_LEAD_SECONDS * SECOND_MS],
    ['Connecting may take {} and a call {}.', CONNECT_TIMEOUT_MS, CALL_TIMEOUT_MS],
    [
      'After {} calls without an answer, a process tries that cluster only every {}.',
      FAILURES_TO_OPEN,
      PAUSE_MS,
    ],
  ],
  'docs/concepts/other-controllers.md': [
    ['its eviction is retried every {}.', BUDGET_RETRY_MS],
    ['guard holds evictions at {} % of a cluster and {} nodes.', cluster?.percent ?? 0, cluster?.nodes ?? 0],
    [
      'the scope trips at {} % and {} nodes within {}.',
      ...[customTaints?.percent ?? 0, customTaints?.nodes ?? 0, customTaints?.windowMs ?? 0],
    ],
  ],
  'docs/concepts/overview.md': [
    ['After {} by default, an eviction', FAILS_AFTER_MS],
    ['**history**, kept for {}.', HISTORY_DAYS * DAY_MS],
  ],
  'docs/concepts/faq.md': [
    ['expires {} after the last heartbeat', DEFAULT_LAPSE_SECONDS * SECOND_MS],
    ['If at least {} % of nodes, and at least {}, are down', cluster?.percent ?? 0, cluster?.nodes ?? 0],
    ['All evictions stop within {}.', RESTRICTED_MS],
    ['leaves the cluster to it within {}.', RELAY_CHECK_MS],
  ],
  'docs/concepts/scalability.md': [
    ['Tainted nodes are sent again every {}.', RESYNC_MS],
    ['enabled by default** and trips at {} % of a cluster', cluster?.percent ?? 0],
    ['Queues keep messages for {}.', RETENTION_SECONDS * SECOND_MS],
    ['address**, again after {}.', DESCRIPTION_REFRESH_MS],
    ['each process reads it once in {}, and', RULES_MAX_AGE_MS],
    ['with a margin of {} |', SCHEDULE_LEAD_SECONDS * SECOND_MS],
  ],
  'docs/concepts/threat-model.md': [
    ['an object may have {}, more than', ANSWER_BYTES.object],
    ['a time more than {} ahead of the clock is replaced', MAX_AHEAD_MS],
    ['a time more than {} ahead is ignored', MAX_AHEAD_MS],
    [
      '{} for reviews, evictions, Events and the version, {} for an object, {} for a list',
      ...[ANSWER_BYTES.short, ANSWER_BYTES.object, ANSWER_BYTES.list],
    ],
    ['{} for all answers under way', UNDER_WAY_BYTES.cluster],
    ['| the same with an endless line | {} |', ANSWER_BYTES.object],
    ['the nodes of a cluster have {};', MAX_BYTES],
    ['`Retry-After` counts up to {}', MAX_RETRY_AFTER_MS],
    ['accepts no more requests is destroyed after {}, and', GOODBYE_MS],
    ['no Lease counts for more than {}', MAX_LEASE_MS],
    ['once, in one browser, within {}', LINK_MS],
    ['they are rendered once {}', RENDERED_EACH_MS],
    ['| {} connections; the connection', CONNECTIONS],
    ['for a new one, and after {} in any case', TICKS_TO_BEGIN * TICK_MS],
    ['headers and body must arrive within {}', TICKS_TO_ASK * TICK_MS],
    ['reads nothing for {} is closed', TICKS_TO_READ * TICK_MS],
  ],
};
