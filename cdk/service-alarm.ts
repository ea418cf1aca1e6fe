import { Alarm, ComparisonOperator, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import { alarmName } from '#shared/telemetry/alarm-name.ts';
import type { AlarmSpec } from './alarms.ts';

/** The page of the repository with a section for each alarm. */
const PAGE = 'docs/how-to/runbooks.md';

export interface ServiceAlarmProps {
  /** The installation's name, which is the prefix of alarm names. */
  readonly prefix: string;
  /** The recipients when the alarm fires and when it recovers. */
  readonly topics: readonly ITopic[];
}

/** Creates an alarm of the installation, with a link to its section in the runbooks. */
export function serviceAlarm(
  scope: Construct,
  { title, of: subject, sentence, metric, threshold = 1, below, lasting, whenMissing }: AlarmSpec,
  { prefix, topics }: ServiceAlarmProps,
): Alarm {
  const { points, outOf, period } = lasting ?? { points: 1, outOf: 1 };
  const name = subject === undefined ? title : `${title} (${subject})`;
  const alarm = new Alarm(scope, name, {
    alarmName: alarmName(prefix, name),
    alarmDescription: `${sentence} What to do: ${PAGE}#${anchorOf(title)}`,
    metric: period ? metric.with({ period }) : metric,
    threshold,
    comparisonOperator: below
      ? ComparisonOperator.LESS_THAN_THRESHOLD
      : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
    evaluationPeriods: outOf,
    ...(points < outOf ? { datapointsToAlarm: points } : {}),
    treatMissingData: whenMissing ?? TreatMissingData.NOT_BREACHING,
  });
  for (const topic of topics) {
    const action = new SnsAction(topic);
    alarm.addAlarmAction(action);
    alarm.addOkAction(action);
  }
  return alarm;
}

/** Returns the anchor of a heading, as Markdown renderers create it. */
const anchorOf = (heading: string): string => heading.toLowerCase().replaceAll(' ', '-');
