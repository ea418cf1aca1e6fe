import { RETRY_POLICY } from '#shared/aws/aws-timers.ts';
import { QUEUES, visibilitySeconds } from '#shared/aws/queue-set.ts';
import { FORGOTTEN_MS } from '#shared/engine/watch/lease-session.ts';
import { RESYNC_MS } from '#shared/eviction/facts.ts';
import { CALM_MS } from '#shared/eviction/guard.ts';
import { IGNORED_MS, MAX_SKEW_MS } from '#shared/eviction/skew.ts';
import { STUCK_AFTER_MS as STUCK_MS } from '#shared/eviction/stuck.ts';
import { MAX_MS as LONGEST_MS } from '#shared/time/written.ts';
import { LATE_SECONDS, MINUTES_ON_END } from '../../../../cdk/alarms.ts';
import { LAST_MS, WATCHED_MS } from './laws.ts';
import { DAY_MS, MINUTE_MS, type Pages, SECOND_MS } from './stated.ts';

/** Texts that users read outside the pages. */
export const TEXTS: Pages = {
  'cdk/alarms.ts': [
    ['waited in evictions-due for {} without a break', MINUTES_ON_END.points * MINUTE_MS],
    [
      'could not send to evictions-due for {}. The next resync, within {},',
      RETRY_POLICY.MaximumEventAgeInSeconds * SECOND_MS,
      RESYNC_MS,
    ],
  ],
  'docs/integrations/alerts.yaml': [
    ['are more than {} overdue', FORGOTTEN_MS],
    ['resets automatically after {} with', CALM_MS],
    ['stuck terminating for more than {} after', STUCK_MS],
    ['Failures are retried at least every {}, so', LAST_MS],
    ['were evicted more than {} after their deadline', LATE_SECONDS * SECOND_MS],
    ['redelivered at least every {}.', visibilitySeconds(QUEUES.evictionsDue) * SECOND_MS],
  ],
  'functions/cli/clusters.ts': [['stops managing it within {};', WATCHED_MS]],
  'shared/operations/acts/rehearsal.ts': [['or releases after {} below half', CALM_MS]],
  'shared/operations/look/doctor.ts': [
    [
      'Beyond {}, evictions are delayed by the difference. Beyond {}, they are held.',
      IGNORED_MS,
      MAX_SKEW_MS,
    ],
  ],
  'shared/conditions/conditions.ts': [['It resets {} after fewer than half', CALM_MS]],
  'shared/time/written.ts': [['and {}d at most', LONGEST_MS / DAY_MS]],
};
