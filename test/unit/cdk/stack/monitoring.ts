import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import { EXPIRY_DEAD_LETTER_NAME, QUEUES } from '#shared/queues/queue-set.ts';
import * as names from '#shared/telemetry/metrics.ts';
import { alertRules } from '#test/prometheus/alert-rules.ts';
import { FUNCTION_NAMES } from '../../../../cdk/bundle.ts';
import { type Properties, readable, resourcesOf } from './resources.ts';
import { synthesized } from './synthesized.ts';

const ALARM = 'AWS::CloudWatch::Alarm';
const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:ops';

let template: Template;
let alarms: ReadonlyMap<string, Properties>;
before(() => {
  template = synthesized();
  alarms = new Map(
    [...resourcesOf(template, ALARM).values()].map((alarm) => [String(alarm['AlarmName']), alarm]),
  );
});

const alarmNamed = (name: string): Properties => {
  const alarm = alarms.get(`taintward: ${name}`);
  assert.ok(alarm, name);
  return alarm;
};

test('each alarm on what the service counts itself has a rule for Prometheus of the same name', () => {
  const own = [...alarms.values()].filter(({ Namespace }) => Namespace === 'taintward');
  const summaries = alertRules().map(({ annotations }) => annotations.summary);
  for (const { AlarmName } of own) {
    assert.ok(summaries.includes(String(AlarmName).replace('taintward: ', '')), String(AlarmName));
  }
});

describe('an alarm rings', () => {
  test('for a single dead letter, in any queue', () => {
    const deadLetterNames = [
      ...Object.values(QUEUES).map(({ deadLetterName }) => deadLetterName),
      EXPIRY_DEAD_LETTER_NAME,
    ];
    for (const name of deadLetterNames) {
      const { MetricName, Threshold, EvaluationPeriods } = alarmNamed(`dead letters in ${name}`);
      assert.deepEqual(
        [MetricName, Threshold, EvaluationPeriods],
        ['ApproximateNumberOfMessagesVisible', 1, 1],
      );
    }
  });

  test('for messages that wait too long', () => {
    for (const { name, fifo } of Object.values(QUEUES)) {
      const { MetricName, Threshold } = alarmNamed(`messages wait in ${name}`);
      assert.equal(MetricName, 'ApproximateAgeOfOldestMessage');
      // What waits for its moment on evictions-due is up to 900 s old and nothing is wrong.
      assert.equal(Threshold, fifo ? 300 : 1500);
    }
  });

  test('for a cluster without a relay, and when nobody counts them any more', () => {
    const alarm = alarmNamed('clusters without a relay');
    assert.equal(alarm['MetricName'], names.UNWATCHED_CLUSTERS);
    assert.equal(alarm['TreatMissingData'], 'breaching');
  });

  test('for a cluster that its relay does not hear from', () => {
    const alarm = alarmNamed('clusters out of reach');
    assert.deepEqual([alarm['MetricName'], alarm['Threshold']], [names.DEAF_CLUSTERS, 1]);
  });

  test('for a relay that is over its budget for long, not for one that stands in for another', () => {
    const alarm = alarmNamed('relays are over their budget');
    assert.deepEqual([alarm['MetricName'], alarm['EvaluationPeriods']], [names.OVER_BUDGET, 10]);
  });

  test('for a guard that holds evictions, at once', () => {
    const { MetricName, Threshold, EvaluationPeriods } = alarmNamed('guards hold evictions');
    assert.deepEqual([MetricName, Threshold, EvaluationPeriods], [names.GUARD_TRIPS, 1, 1]);
  });

  test('for a takeover that is not renewed, at once: a minute later the built-in controller evicts', () => {
    const { MetricName, Threshold, EvaluationPeriods } = alarmNamed('takeovers are not renewed');
    assert.deepEqual([MetricName, Threshold, EvaluationPeriods], [names.TAKEOVERS_WITHHELD, 1, 1]);
  });

  test('for a single delta that its queue refuses', () => {
    const { MetricName, Threshold, EvaluationPeriods } = alarmNamed('deltas are refused');
    assert.deepEqual([MetricName, Threshold, EvaluationPeriods], [names.REFUSED_DELTAS, 1, 1]);
  });

  test('for late evictions, API servers that refuse, evictions that are given up, other installations and clocks that differ', () => {
    const late = alarmNamed('late evictions');
    assert.deepEqual(
      [late['Namespace'], late['MetricName'], late['Statistic'], late['Threshold']],
      ['taintward', names.POD_DELETION_DURATION, 'Maximum', 60],
    );
    assert.equal(alarmNamed('API servers refuse evictions')['MetricName'], names.API_REFUSALS);
    assert.equal(alarmNamed('evictions are given up')['MetricName'], names.GIVEN_UP);
    assert.equal(alarmNamed('clusters are shared')['MetricName'], names.RIVALS);
    assert.equal(alarmNamed('clocks differ')['MetricName'], names.CLOCK_SKEW);
  });

  test('for functions that fail or are throttled, a throttled table and dropped schedules', () => {
    for (const name of FUNCTION_NAMES) {
      assert.equal(alarmNamed(`${name} fails`)['MetricName'], 'Errors');
      assert.equal(alarmNamed(`${name} is throttled`)['MetricName'], 'Throttles');
    }
    assert.equal(alarmNamed('the table throttles (write)')['MetricName'], 'WriteThrottleEvents');
    assert.equal(alarmNamed('the table throttles (read)')['MetricName'], 'ReadThrottleEvents');
    assert.equal(alarmNamed('schedules are dropped')['MetricName'], 'InvocationDroppedCount');
  });
});

describe('every alarm', () => {
  test('says what it means and what to do', () => {
    for (const alarm of alarms.values()) assert.match(String(alarm['AlarmDescription']), /^.{40,}\.$/);
  });

  test('is of the form that stand-ins for AWS know, too: one metric, no math', () => {
    for (const alarm of alarms.values()) assert.equal(alarm['Metrics'], undefined);
  });

  test('tells nobody by default, and the topic that is chosen both ways', () => {
    for (const alarm of alarms.values()) assert.equal(alarm['AlarmActions'], undefined);
    for (const alarm of resourcesOf(synthesized({ 'taintward:alarmTopicArn': TOPIC }), ALARM).values()) {
      assert.deepEqual(alarm['AlarmActions'], [TOPIC]);
      assert.deepEqual(alarm['OKActions'], [TOPIC]);
    }
  });
});

test('the dashboard shows all alarms, and every metric of our own', () => {
  const [dashboard] = resourcesOf(template, 'AWS::CloudWatch::Dashboard').values();
  const body = String(readable(dashboard?.['DashboardBody']));
  const { widgets } = JSON.parse(body) as { widgets: { type: string; properties: { alarms?: unknown[] } }[] };
  assert.equal(widgets.find(({ type }) => type === 'alarm')?.properties.alarms?.length, alarms.size);
  for (const name of Object.values(names)) assert.ok(body.includes(`"${name}"`), name);
});

test('the dashboard tells of each cluster what the log does', () => {
  const [dashboard] = resourcesOf(template, 'AWS::CloudWatch::Dashboard').values();
  const { widgets } = JSON.parse(String(readable(dashboard?.['DashboardBody']))) as {
    widgets: { type: string; properties: { query?: string; view?: string } }[];
  };
  const [byCluster, ...others] = widgets.filter(({ type }) => type === 'log');
  assert.deepEqual([byCluster?.properties.view, others], ['table', []]);
  assert.match(
    byCluster?.properties.query ?? '',
    /filter event in \["eviction.scheduled", .*\| stats count\(\*\) as evictions by cluster, event/s,
  );
});
