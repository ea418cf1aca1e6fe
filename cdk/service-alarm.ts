import { Alarm, ComparisonOperator, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import { alarmName } from '#shared/telemetry/alarm-name.ts';
import type { AlarmSpec } from './alarms.ts';

/** The page of the repository with a paragraph for each alarm. */
const PAGE = 'docs/how-to/runbooks.md';

export interface ServiceAlarmProps {
  /** The installation's name, which the names of its alarms begin with. */
  readonly prefix: string;
  /** Who is told when it rings, and when that is over. */
  readonly topics: readonly ITopic[];
}

/** An alarm of the installation, which leads to the paragraph on what to do. */
export function serviceAlarm(
  scope: Construct,
  { id, title, of, says, metric, threshold, below, lasting, whenMissing }: AlarmSpec,
  { prefix, topics }: ServiceAlarmProps,
): Alarm {
  const { points, outOf, period } = lasting;
  const alarm = new Alarm(scope, id, {
    alarmName: alarmName(prefix, of === undefined ? title : `${title} (${of})`),
    alarmDescription: `${says} What to do: ${PAGE}#${anchorOf(title)}`,
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

/** The anchor of a heading, as Markdown is shown everywhere. */
const anchorOf = (heading: string): string => heading.toLowerCase().replaceAll(' ', '-');
