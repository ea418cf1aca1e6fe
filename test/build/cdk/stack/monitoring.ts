import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { EVICT_RECORD_DEADLINE_MS } from '#shared/aws/due-consumption.ts';
import { QUEUES, visibilitySeconds } from '#shared/aws/queue-set.ts';
import { MAX_RETRY_MS } from '#shared/eviction/retry.ts';
import * as names from '#shared/telemetry/metrics.ts';
import { VERSION } from '#shared/version.ts';
import { alertRules } from '#test/prometheus/alert-rules.ts';
import { pageText } from '#test/transcripts/page.ts';
import { BY_CLUSTER_QUERIES } from '../../../../cdk/dashboard.ts';
import { metricsCatalogue } from '../../../../docs/generator/metrics-catalogue.ts';
import { AWS_METRICS } from './aws-metrics.ts';
import { type Properties, readable, resourcesOf } from './resources.ts';
import { synthesized, synthesizedAgent, warningsOf } from './synthesized.ts';

const ALARM = 'AWS::CloudWatch::Alarm';
const PAGE = 'AWS::CloudWatch::CompositeAlarm';
const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:ops';
const WARNINGS = `${TOPIC}-warnings`;
const RUNBOOKS = `https://github.com/taintward/taintward/blob/v${VERSION}/docs/how-to/runbooks.md`;
/** The ones of which at least one fires while `Evictions impaired` does. */
const CRITICAL = [
  ...['API server unreachable', 'Cluster unreachable', 'Cluster without relay'],
  ...['Delta sending failing', 'Deltas rejected', 'Due messages not processed', 'Evictions failed'],
  ...['Guard tripped', 'No eviction controller', 'Queue backlog (node-deltas.fifo)'],
  ...['Queue backlog (pod-deltas.fifo)', 'Takeover heartbeat suspended'],
];

let template: Template;
let alarms: ReadonlyMap<string, Properties>;
let pages: readonly Properties[];
/** The alarms of the service and of an agent. */
let everyAlarm: readonly Properties[];
before(() => {
  template = synthesized();
  alarms = new Map(
    [...resourcesOf(template, ALARM).values()].map((alarm) => [String(alarm['AlarmName']), alarm]),
  );
  pages = [...resourcesOf(template, PAGE).values()];
  const agent = synthesizedAgent('edge-1', { 'taintward:agents': { 'edge-1': { cluster: 'edge' } } });
  everyAlarm = [...alarms.values(), ...resourcesOf(agent, ALARM).values()];
});

const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

interface Graph {
  readonly title: string;
  readonly metrics: readonly (readonly (string | { readonly stat?: string; readonly period?: number })[])[];
}

/** Returns the graphs of the dashboard. A metric is its namespace, name, dimensions, and rendering options. */
function graphsOf(stack: Template): readonly Graph[] {
  const [dashboard] = resourcesOf(stack, 'AWS::CloudWatch::Dashboard').values();
  const { widgets } = JSON.parse(String(readable(dashboard?.['DashboardBody']))) as {
    widgets: { type: string; properties: Graph }[];
  };
  return widgets.filter(({ type }) => type === 'metric').map(({ properties }) => properties);
}

const alarmNamed = (name: string): Properties => {
  const alarm = alarms.get(`taintward: ${name}`);
  assert.ok(alarm, name);
  return alarm;
};

test('each alarm on a metric of the service has a Prometheus rule of the same name', () => {
  const own = [...alarms.values()].filter(({ Namespace }) => Namespace === 'taintward');
  const summaries = alertRules().map(({ annotations }) => annotations.summary);
  for (const { AlarmName } of own) {
    assert.ok(
      summaries.includes(String(AlarmName).replace('taintward: ', '')),
      `no alert has the name of ${AlarmName} as its summary: add one to docs/integrations/alerts.yaml`,
    );
  }
});

describe('an alarm fires', () => {
  test('for messages that keep failing, even at the longest retry interval', () => {
    const { Namespace, MetricName, Statistic, Period, EvaluationPeriods } = alarmNamed(
      'Messages failing repeatedly',
    );
    assert.deepEqual([Namespace, MetricName, Statistic], ['taintward', names.MESSAGES_FAILING, 'Sum']);
    assert.ok(Number(Period) > visibilitySeconds(QUEUES.evictionsDue) + EVICT_RECORD_DEADLINE_MS / 1000);
    assert.equal(EvaluationPeriods, 2);
  });

  test('for an API server that rejects or ignores each attempt, even at the longest retry interval', () => {
    for (const [name, metric] of [
      ['Eviction requests failing', names.API_REFUSALS],
      ['API server unreachable', names.OUT_OF_REACH],
    ] as const) {
      const { MetricName, Period, EvaluationPeriods } = alarmNamed(name);
      assert.deepEqual([MetricName, EvaluationPeriods], [metric, 2]);
      // The period also covers the duration of an attempt.
      assert.ok(Number(Period) > (MAX_RETRY_MS + EVICT_RECORD_DEADLINE_MS) / 1000);
    }
  });
});

describe('every alarm', () => {
  test('describes its meaning and links to its runbook section; every section has an alarm', () => {
    const sections = readFileSync(join(PROJECT_DIR, 'docs/how-to/runbooks.md'), 'utf8')
      .split(/^## /m)
      .slice(1);
    const anchors = new Map(sections.map((text) => [anchorOf(text.slice(0, text.indexOf('\n'))), text]));
    const found = new Set<string>();
    for (const alarm of [...everyAlarm, ...pages]) {
      const [sentence = '', link = ''] = String(alarm['AlarmDescription']).split(' What to do: ');
      assert.match(sentence, /^[A-Z].{40,}\.$/);
      assert.ok(link.startsWith(`${RUNBOOKS}#`), link);
      const anchor = link.slice(RUNBOOKS.length + 1);
      assert.ok(anchors.has(anchor), `docs/how-to/runbooks.md has no heading #${anchor}`);
      assert.ok(anchorOf(String(alarm['AlarmName'])).startsWith(`taintward-${anchor}`), anchor);
      found.add(anchor);
    }
    assert.deepEqual([...anchors.keys()].toSorted(), [...found].toSorted());
    for (const [anchor, text] of anchors) assert.match(text, /\*\*It means\*\* .*\*\*Do\*\* /s, anchor);
  });

  test('looks back at most a day, as CloudWatch requires', () => {
    for (const { Period, EvaluationPeriods } of everyAlarm)
      assert.ok(Number(Period) * Number(EvaluationPeriods) <= 86_400);
  });
});

describe('alarms notify', () => {
  const AGENTS = { 'taintward:agents': { 'edge-1': { cluster: 'edge' } } };
  /** Returns the names of alarms that notify each topic, or nobody, on alarm and on recovery. */
  const notifying = (stack: Template) =>
    Map.groupBy(
      [ALARM, PAGE].flatMap((type) => [...resourcesOf(stack, type).values()]),
      ({ AlarmActions, OKActions }) => {
        assert.deepEqual(AlarmActions, OKActions);
        return String(AlarmActions);
      },
    );
  const namesOf = (some: readonly Properties[] = []) =>
    some.map(({ AlarmName }) => String(AlarmName).replace('taintward: ', '')).toSorted();
  const output = (stack: Template) => stack.findOutputs('AlarmsTell')['AlarmsTell']?.['Value'];

  test('nobody by default, and the deployment warns about it', () => {
    assert.deepEqual([...notifying(template).keys()], ['undefined']);
    assert.match(output(template), /^nobody: set taintward:alarmEmail/);
    const [warning, ...others] = warningsOf();
    assert.match(
      warning ?? '',
      /^The alarms of taintward tell nobody: set taintward:alarmEmail .* deploy again/,
    );
    assert.deepEqual(others, []);
  });

  for (const key of ['alarmTopicArn', 'warningTopicArn']) {
    test(`the chosen topic, if ${key} is the only one`, () => {
      const given = synthesized({ [`taintward:${key}`]: TOPIC });
      assert.deepEqual([...notifying(given).keys()], [TOPIC]);
      assert.ok(output(given).startsWith(TOPIC));
      assert.deepEqual(warningsOf({ [`taintward:${key}`]: TOPIC }), []);
      given.resourceCountIs('AWS::SNS::Topic', 0);
    });
  }

  test('once for an outage, with two topics: one alarm may wake somebody, for any critical one', () => {
    const both = { 'taintward:alarmTopicArn': TOPIC, 'taintward:warningTopicArn': WARNINGS };
    const found = notifying(synthesized(both));
    assert.deepEqual([...found.keys()].toSorted(), [TOPIC, WARNINGS]);
    assert.deepEqual(namesOf(found.get(TOPIC)), ['Evictions impaired']);
    assert.equal(found.get(WARNINGS)?.length, alarms.size);
    assert.deepEqual(namesOf(notifying(synthesizedAgent('edge-1', { ...both, ...AGENTS })).get(TOPIC)), [
      'Agent silent (agent edge-1)',
    ]);
  });

  test('an address of all alarms, beside topics', () => {
    const context = { 'taintward:alarmTopicArn': TOPIC, 'taintward:alarmEmail': 'ops@example.com' };
    for (const stack of [synthesized(context), synthesizedAgent('edge-1', { ...context, ...AGENTS })])
      for (const [topics] of notifying(stack)) assert.match(topics, /^[^,]*:ops,/);
  });
});

test('the alarm that may wake somebody fires with each critical alarm', () => {
  const ids = new Map([...resourcesOf(template, ALARM)].map(([id, alarm]) => [`${id}.Arn`, alarm]));
  const [page, ...others] = pages;
  assert.deepEqual(others, []);
  const rule = String(readable(page?.['AlarmRule']));
  assert.match(rule, /^\(ALARM\("<[^>]+>"\)( OR ALARM\("<[^>]+>"\))*\)$/);
  const members = [...rule.matchAll(/<([^>]+)>/g)].map(([, id = '']) => String(ids.get(id)?.['AlarmName']));
  assert.deepEqual(members.map((name) => name.replace('taintward: ', '')).toSorted(), CRITICAL);
  const [, listed = ''] = /These are critical: (.*?)\. An agent/s.exec(pageText('how-to/runbooks.md')) ?? [];
  const titles = [...listed.matchAll(/`([A-Z][^`]+)`/g)].map(([, title]) => title);
  assert.deepEqual(titles, [...new Set(CRITICAL.map((name) => name.replace(/ \(.*/, '')))]);
});

describe('alarms and dashboard read existing metrics:', () => {
  interface Read {
    readonly where: string;
    readonly namespace: string;
    readonly name: string;
    readonly dimensions: readonly string[];
    readonly statistic: string;
    readonly period: number;
  }
  const read = (): readonly Read[] => [
    ...everyAlarm.map((alarm) => ({
      where: String(alarm['AlarmName']),
      namespace: String(alarm['Namespace']),
      name: String(alarm['MetricName']),
      dimensions: ((alarm['Dimensions'] ?? []) as { Name: string }[]).map(({ Name }) => Name).toSorted(),
      statistic: String(alarm['Statistic'] ?? alarm['ExtendedStatistic']),
      period: Number(alarm['Period']),
    })),
    ...graphsOf(template).flatMap(({ title, metrics }) =>
      metrics.map((metric) => {
        const texts = metric.filter((part) => typeof part === 'string');
        const { stat = 'Average', period = 300 } = metric.find((part) => typeof part !== 'string') ?? {};
        const [namespace = '', name = '', ...rest] = texts;
        const dimensions = rest.filter((_, index) => index % 2 === 0).toSorted();
        return { where: `the graph ${title}`, namespace, name, dimensions, statistic: stat, period };
      }),
    ),
  ];

  test('AWS metrics are metrics that its services write, under all their dimensions', () => {
    const ofAws = read().filter(({ namespace }) => namespace !== 'taintward');
    assert.ok(ofAws.length > 0);
    for (const { where, namespace, name, dimensions, statistic } of ofAws) {
      const known = AWS_METRICS[namespace]?.metrics[name] ?? [];
      const metric = `${where}: ${namespace} ${name} by ${dimensions.join(' and ')}`;
      const written = known.find((each) => each.dimensions.join() === dimensions.join());
      assert.ok(written, `${metric} is not written`);
      assert.ok(written.statistics.includes(statistic), `${metric} has no ${statistic}`);
    }
  });

  test('each listed AWS metric is read', () => {
    const found = new Set(
      read().map(({ namespace, name, dimensions }) => [namespace, name, ...dimensions].join()),
    );
    for (const [namespace, { metrics }] of Object.entries(AWS_METRICS))
      for (const [name, metric] of Object.entries(metrics))
        for (const { dimensions } of metric)
          assert.ok(found.has([namespace, name, ...dimensions].join()), name);
  });

  test('metrics of the service are those that it writes into its log, without dimensions', async () => {
    const written = new Map((await metricsCatalogue()).map(({ name, cloudWatch }) => [name, cloudWatch]));
    for (const { where, name, dimensions, statistic, period } of read().filter(
      ({ namespace }) => namespace === 'taintward',
    )) {
      const { unit } = written.get(name) ?? assert.fail(`${where}: nobody writes ${name}`);
      assert.deepEqual(dimensions, []);
      assert.equal(period % 60, 0, 'what is written by log is kept by the minute');
      assert.ok(unit === 'Count' || statistic !== 'Sum', `${where} adds seconds up`);
    }
  });
});

test('the dashboard shows all alarms, and every metric of the service', () => {
  const [dashboard] = resourcesOf(template, 'AWS::CloudWatch::Dashboard').values();
  const body = String(readable(dashboard?.['DashboardBody']));
  const { widgets } = JSON.parse(body) as { widgets: { type: string; properties: { alarms?: unknown[] } }[] };
  const shown = widgets.find(({ type }) => type === 'alarm')?.properties.alarms;
  assert.equal(shown?.length, pages.length + alarms.size);
  for (const name of Object.values(names))
    assert.ok(body.includes(`"${name}"`), `the dashboard lacks ${name}: add it to cdk/dashboard.ts`);
});

test('the dashboard finds metrics by cluster under the names that evict writes', async () => {
  const graphs = graphsOf(synthesized({ 'taintward:metricsByCluster': 'true' }));
  const searched = JSON.stringify(graphs).match(/SEARCH\('\{taintward,cluster\} MetricName=\\*"\w+/g) ?? [];
  const found = searched.map((text) => /\w+$/.exec(text)?.[0] ?? '');
  assert.equal(found.length, 6);
  const catalogue = await metricsCatalogue();
  for (const name of found) {
    const written = catalogue.find((each) => each.name === name)?.cloudWatch?.writtenBy;
    assert.ok(written?.includes('evict'), name);
  }
  assert.doesNotMatch(JSON.stringify(graphsOf(template)), /SEARCH/);
});

test('the dashboard queries the log for each cluster', () => {
  const [dashboard] = resourcesOf(template, 'AWS::CloudWatch::Dashboard').values();
  const { widgets } = JSON.parse(String(readable(dashboard?.['DashboardBody']))) as {
    widgets: { type: string; properties: { query?: string; view?: string } }[];
  };
  const queries = widgets.filter(({ type }) => type === 'log').map(({ properties }) => properties);
  assert.equal(queries.length, BY_CLUSTER_QUERIES.length);
  for (const { view, query } of queries) {
    assert.equal(view, 'table');
    assert.match(query ?? '', /\| stats .* by cluster/s);
  }
});
