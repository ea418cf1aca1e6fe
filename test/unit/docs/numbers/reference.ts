import { REFRESH_MS as SECRET_REFRESH_MS } from '#shared/access/kubeconfig-secret-connection.ts';
import { SCHEDULE_LEAD_SECONDS } from '#shared/aws/aws-timers.ts';
import { EVICT_BATCH_SIZE } from '#shared/aws/due-consumption.ts';
import { NODES_PER_MIB } from '#shared/aws/environment.ts';
import { FLUSH_MS } from '#shared/aws/event-bus.ts';
import { MAX_BATCH_MESSAGES, MAX_DELAY_SECONDS, MAX_MESSAGE_BYTES } from '#shared/aws/limits.ts';
import { ANNOUNCED_COUNTDOWN_MS } from '#shared/engine/decide/apply-deltas.ts';
import { PARALLEL_EVICTIONS } from '#shared/engine/evict/pass.ts';
import { CLUSTER_LOAD } from '#shared/engine/watch/fleet.ts';
import { LEASE_RENEW_MS } from '#shared/engine/watch/lease-manager.ts';
import { FORGOTTEN_MS } from '#shared/engine/watch/lease-session.ts';
import { CHECK_PERMISSIONS_MS, PING_MS } from '#shared/engine/watch/permission-watch.ts';
import { REPORTED_SKEW_MS } from '#shared/engine/watch/relay.ts';
import { POLL_MS } from '#shared/engine/watch/rules-watch.ts';
import { HEARTBEAT_MS } from '#shared/engine/watch/takeover-heartbeat.ts';
import { BUDGET_RETRY_MS } from '#shared/eviction/budget.ts';
import { MAX_AHEAD_MS } from '#shared/eviction/facts.ts';
import { CALM_MS } from '#shared/eviction/guard.ts';
import { PERMIT_LASTS_MS } from '#shared/eviction/permits.ts';
import { MAX_ANNOTATION_CHARACTERS } from '#shared/eviction/selectors.ts';
import { MAX_SKEW_MS } from '#shared/eviction/skew.ts';
import { STUCK_AFTER_MS as STUCK_MS } from '#shared/eviction/stuck.ts';
import { TICK_MS, TICKS_BETWEEN_REPORTS } from '#shared/http/listener.ts';
import { MAX_CONCURRENT_CALLS } from '#shared/kubernetes/http/transport.ts';
import { UNSEEN_SECONDS } from '#shared/operations/fleet/sqs-queues.ts';
import { CONFIG_MAP_MS } from '#shared/state/objects/config-map-policy.ts';
import { MAX_ALIASES, MAX_DOCUMENT_CHARACTERS } from '#shared/state/policy-document.ts';
import { RULES_MAX_AGE_MS } from '#shared/state/rules-store.ts';
import { MAX_MS as LONGEST_MS } from '#shared/time/written.ts';
import { defaultOf } from '../../../../cdk/config.ts';
import { numberIn } from '../../entry-constant.ts';
import { FAILOVER_MS, PERMITTED_MS, REPLICAS, RESTRICTED_MS } from './laws.ts';
import { DAY_MS, type Pages, SECOND_MS } from './stated.ts';

const RELAY_MIB = Number(defaultOf('relayMemoryMiB'));
const RELAY_NODES = NODES_PER_MIB * RELAY_MIB;

export const REFERENCE: Pages = {
  'docs/reference/policy.md': [
    ['or `1h30m`, up to `{}d`.', LONGEST_MS / DAY_MS],
    ['A document has up to {} characters, and up to {} aliases', MAX_DOCUMENT_CHARACTERS, MAX_ALIASES],
    ['The eviction is retried every {},', BUDGET_RETRY_MS],
    ['values have at most {} characters', MAX_ANNOTATION_CHARACTERS],
    ['half of them are affected for {}.', CALM_MS],
    ['renews its leases, so it detects this within {}.', LEASE_RENEW_MS],
    ['older than the window plus {}. {} is the longest time', PERMIT_LASTS_MS, PERMIT_LASTS_MS],
    [
      'takes effect within {}: before each delete, the rules are read again unless they are less than {} old.',
      RESTRICTED_MS,
      RULES_MAX_AGE_MS,
    ],
    ['for all its clusters | within {};', PERMITTED_MS],
    ['`service.policy`, or `kubectl` | within {} |', CONFIG_MAP_MS + PERMITTED_MS],
    ['| commands and the console | nothing else | within {} |', PERMITTED_MS],
    ['A permission takes effect within {}: relays read the rules every {}.', PERMITTED_MS, POLL_MS],
  ],
  'docs/reference/cli.md': [
    ['Stop all evictions in clusters, within {}.', RESTRICTED_MS],
    ['Apply a policy to clusters. It takes effect within {}.', PERMITTED_MS],
    ['invisible to other readers for up to {}.', UNSEEN_SECONDS * SECOND_MS],
  ],
  'docs/reference/configuration.md': [
    ['capacity is {} nodes per MiB; a cluster counts as {} more nodes', NODES_PER_MIB, CLUSTER_LOAD],
  ],
  'docs/reference/log-events.md': [
    ['`timeAdded` more than {} in the future', MAX_AHEAD_MS],
    ['still terminating more than {} after its grace period', STUCK_MS],
    ['Pods are more than {} overdue.', FORGOTTEN_MS],
    ['of the relay differ by more than {}.', MAX_SKEW_MS],
    ['Logged at most once {}.', TICKS_BETWEEN_REPORTS * TICK_MS],
  ],
  'docs/reference/metrics.md': [
    ['Clusters with pods that are more than {} overdue', FORGOTTEN_MS],
    ['relays report it beyond {} only', REPORTED_SKEW_MS],
    ['rejected permanently (over {}).', MAX_MESSAGE_BYTES],
    ['Evicted pods of the cluster that are stuck terminating for more than {} after', STUCK_MS],
    ['Evicted pods that are stuck terminating for more than {} after', STUCK_MS],
  ],
  'docs/reference/notifications.md': [["doesn't accept events within {}, they are lost", FLUSH_MS]],
  'docs/reference/quotas-and-costs.md': [
    [
      'a relay of {} | {} nodes, a cluster counting as {} more: 100 clusters of {} nodes, or one of {} |',
      ...[RELAY_MIB * 1024 * 1024, RELAY_NODES, CLUSTER_LOAD, Math.floor(RELAY_NODES / 100) - CLUSTER_LOAD],
      RELAY_NODES - CLUSTER_LOAD,
    ],
    ['by which a relay checks every {} that', PING_MS],
    ['reviews of permissions, one every {}. More', CHECK_PERMISSIONS_MS],
    ['may need a heartbeat every {}', HEARTBEAT_MS],
    ['A toleration beyond {} adds', MAX_DELAY_SECONDS * SECOND_MS],
    ['A toleration beyond {} posts an Event', ANNOUNCED_COUNTDOWN_MS],
    ['and a read every {} per process', SECRET_REFRESH_MS],
    ['one per node and deadline beyond {} |', MAX_DELAY_SECONDS * SECOND_MS],
    ['| 3 × {} + 2 at the most |', Number(defaultOf('concurrency'))],
    ['a batch of {} deltas a call', MAX_BATCH_MESSAGES],
    [
      'each batch (up to {} nodes) has at most {} concurrent requests per node and {} per cluster',
      ...[EVICT_BATCH_SIZE, PARALLEL_EVICTIONS, MAX_CONCURRENT_CALLS],
    ],
  ],
};

export const TUTORIALS: Pages = {
  'docs/tutorials/localstack.md': [
    [
      'is more than {} away. Its timer is therefore a schedule, which sends a message {} early',
      MAX_DELAY_SECONDS * SECOND_MS,
      SCHEDULE_LEAD_SECONDS * SECOND_MS,
    ],
  ],
};

export const CHART: Pages = {
  'deploy/chart/README.md': [
    ['A Deployment of {} replicas.', REPLICAS],
    ['and within {} when it is lost', FAILOVER_MS],
    [
      'not ready or unreachable for {}.',
      numberIn('deploy/in-cluster/deployment.yaml', /unreachable\n(?: .*\n)*? +tolerationSeconds: (\d+)$/m) *
        SECOND_MS,
    ],
  ],
};
