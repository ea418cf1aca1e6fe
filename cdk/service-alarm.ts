import { Alarm, type AlarmBase, ComparisonOperator, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import type { Construct } from 'constructs';
import { alarmName } from '#shared/telemetry/alarm-name.ts';
import project from '../package.json' with { type: 'json' };
import type { AlarmTopics } from './alarm-topics.ts';
import type { AlarmSpec } from './alarms.ts';

/** The page of the release with a section for each alarm. */
const PAGE = `${project.repository.url.replace(/^git\+|\.git$/g, '')}/blob/v${project.version}/docs/how-to/runbooks.md`;

/** Creates an alarm of the installation. `prefix`: the installation's name, which begins those of alarms. */
export function serviceAlarm(
  scope: Construct,
  { title, of: subject, sentence, severity, metric, threshold = 1, below, lasting, whenMissing }: AlarmSpec,
  { prefix, topics }: { readonly prefix: string; readonly topics: AlarmTopics },
): Alarm {
  const { points, outOf, period } = lasting ?? { points: 1, outOf: 1 };
  const name = subject === undefined ? title : `${title} (${subject})`;
  const alarm = new Alarm(scope, name, {
    alarmName: alarmName(prefix, name),
    alarmDescription: described({ title, sentence }),
    metric: period ? metric.with({ period }) : metric,
    threshold,
    comparisonOperator: below
      ? ComparisonOperator.LESS_THAN_THRESHOLD
      : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
    evaluationPeriods: outOf,
    ...(points < outOf ? { datapointsToAlarm: points } : {}),
    treatMissingData: whenMissing ?? TreatMissingData.NOT_BREACHING,
  });
  notify(alarm, topics[severity ?? 'warning']);
  return alarm;
}

/** Has an alarm notify topics when it fires and when it recovers. */
export function notify(alarm: AlarmBase, topicArns: readonly string[]): void {
  const actions = topicArns.map((alarmActionArn) => ({ bind: () => ({ alarmActionArn }) }));
  alarm.addAlarmAction(...actions);
  alarm.addOkAction(...actions);
}

/** Returns the description of an alarm, with a link to its section in the runbooks. */
export const described = ({ title, sentence }: Pick<AlarmSpec, 'title' | 'sentence'>): string =>
  `${sentence} What to do: ${PAGE}#${anchorOf(title)}`;

/** Returns the anchor of a heading, as Markdown renderers create it. */
const anchorOf = (heading: string): string => heading.toLowerCase().replaceAll(' ', '-');
