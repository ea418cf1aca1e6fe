import { Annotations, Stack } from 'aws-cdk-lib';
import { ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { type ITopic, Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import { mailTopicName } from './alarm-topics.ts';
import { type AlarmedProps, alarmSpecs } from './alarms.ts';
import { ServiceDashboard } from './dashboard.ts';
import { serviceAlarm } from './service-alarm.ts';

const NOBODY =
  'nobody: set taintward:alarmEmail to an address, or taintward:alarmTopicArn to an SNS topic, and deploy again';

/** What tells an operator that something is wrong, and where to look. */
export class Monitoring extends Construct {
  readonly dashboard: ServiceDashboard;
  /** Who is told when an alarm rings, for people. */
  readonly told: string;

  constructor(scope: Construct, id: string, props: AlarmedProps) {
    super(scope, id);
    const { name, alarmTopicArn, alarmEmail } = props.config;
    const topics = [
      ...(alarmTopicArn === undefined ? [] : [Topic.fromTopicArn(this, 'Topic', alarmTopicArn)]),
      ...(alarmEmail === undefined ? [] : [this.#mailTo(alarmEmail, name)]),
    ];
    const told = [
      alarmTopicArn,
      alarmEmail && `${alarmEmail}, once the mail that AWS sends there is confirmed`,
    ];
    this.told = told.filter((each) => each !== undefined).join('; ') || NOBODY;
    if (topics.length === 0)
      Annotations.of(this).addWarningV2(
        'taintward:alarms-tell-nobody',
        `The alarms of ${name} tell ${NOBODY}.`,
      );
    const alarms = alarmSpecs(props).map((spec) => serviceAlarm(this, spec, { prefix: name, topics }));
    this.dashboard = new ServiceDashboard(this, 'Dashboard', { ...props, alarms });
  }

  /**
   * A topic that only alarms of this account may publish to, and only by TLS. It has no key: CloudWatch cannot use that of
   * AWS, one of its own costs a dollar a month, and what alarms say is no secret.
   */
  #mailTo(address: string, name: string): ITopic {
    const topic = new Topic(this, 'Mail', {
      topicName: mailTopicName(name),
      displayName: name,
      enforceSSL: true,
    });
    topic.addSubscription(new EmailSubscription(address));
    const { account } = Stack.of(this);
    const alarms = new ServicePrincipal('cloudwatch.amazonaws.com', {
      conditions: { StringEquals: { 'aws:SourceAccount': account } },
    });
    topic.grantPublish(alarms);
    return topic;
  }
}
