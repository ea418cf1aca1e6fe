import { Annotations, Stack } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { type ITopic, Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import { alarmName } from '#shared/telemetry/alarm-name.ts';
import { type AlarmedProps, type AlarmSpec, alarmSpecs } from './alarms.ts';
import { ServiceDashboard } from './dashboard.ts';

/** The page of the repository with a paragraph for each alarm. */
const PAGE = 'docs/alarms.md';

const NOBODY =
  'nobody: set taintward:alarmEmail to an address, or taintward:alarmTopicArn to an SNS topic, and deploy again';

/** What tells an operator that something is wrong, and where to look. */
export class Monitoring extends Construct {
  readonly dashboard: ServiceDashboard;
  /** Who is told when an alarm rings, for people. */
  readonly told: string;
  readonly #prefix: string;
  readonly #topics: readonly ITopic[];

  constructor(scope: Construct, id: string, props: AlarmedProps) {
    super(scope, id);
    const { name, alarmTopicArn, alarmEmail } = props.config;
    this.#prefix = name;
    this.#topics = [
      ...(alarmTopicArn === undefined ? [] : [Topic.fromTopicArn(this, 'Topic', alarmTopicArn)]),
      ...(alarmEmail === undefined ? [] : [this.#mailTo(alarmEmail)]),
    ];
    const told = [
      alarmTopicArn,
      alarmEmail && `${alarmEmail}, once the mail that AWS sends there is confirmed`,
    ];
    this.told = told.filter((each) => each !== undefined).join('; ') || NOBODY;
    if (this.#topics.length === 0)
      Annotations.of(this).addWarningV2(
        'taintward:alarms-tell-nobody',
        `The alarms of ${name} tell ${NOBODY}.`,
      );
    const alarms = alarmSpecs(props).map((spec) => this.#alarm(spec));
    this.dashboard = new ServiceDashboard(this, 'Dashboard', { ...props, alarms });
  }

  /**
   * A topic that only alarms of this account may publish to, and only by TLS. It has no key: CloudWatch cannot use that of
   * AWS, one of its own costs a dollar a month, and what alarms say is no secret.
   */
  #mailTo(address: string): ITopic {
    const topic = new Topic(this, 'Mail', { displayName: this.#prefix, enforceSSL: true });
    topic.addSubscription(new EmailSubscription(address));
    const { account } = Stack.of(this);
    const alarms = new ServicePrincipal('cloudwatch.amazonaws.com', {
      conditions: { StringEquals: { 'aws:SourceAccount': account } },
    });
    topic.grantPublish(alarms);
    return topic;
  }

  #alarm({ id, title, of, says, metric, threshold, lasting, whenMissing }: AlarmSpec): Alarm {
    const { points, outOf, period } = lasting;
    const alarm = new Alarm(this, id, {
      alarmName: alarmName(this.#prefix, of === undefined ? title : `${title} (${of})`),
      alarmDescription: `${says} What to do: ${PAGE}#${anchorOf(title)}`,
      metric: period ? metric.with({ period }) : metric,
      threshold,
      comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      evaluationPeriods: outOf,
      ...(points < outOf ? { datapointsToAlarm: points } : {}),
      treatMissingData: whenMissing ?? TreatMissingData.NOT_BREACHING,
    });
    for (const topic of this.#topics) {
      const action = new SnsAction(topic);
      alarm.addAlarmAction(action);
      alarm.addOkAction(action);
    }
    return alarm;
  }
}

/** The anchor of a heading, as Markdown is shown everywhere. */
const anchorOf = (heading: string): string => heading.toLowerCase().replaceAll(' ', '-');
