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

/** The alarms and the dashboard, by which an operator sees and locates failures. */
export class Monitoring extends Construct {
  readonly dashboard: ServiceDashboard;
  /** The recipients of alarms, as text for people. */
  readonly recipients: string;

  constructor(scope: Construct, id: string, props: AlarmedProps) {
    super(scope, id);
    const { name, alarmTopicArn, alarmEmail } = props.config;
    const topics = [
      ...(alarmTopicArn === undefined ? [] : [Topic.fromTopicArn(this, 'Topic', alarmTopicArn)]),
      ...(alarmEmail === undefined ? [] : [this.#mailTo(alarmEmail, name)]),
    ];
    const recipients = [
      alarmTopicArn,
      alarmEmail && `${alarmEmail}, once the mail that AWS sends there is confirmed`,
    ];
    this.recipients = recipients.filter((each) => each !== undefined).join('; ') || NOBODY;
    if (topics.length === 0)
      Annotations.of(this).addWarningV2(
        'taintward:alarms-tell-nobody',
        `The alarms of ${name} tell ${NOBODY}.`,
      );
    const alarms = alarmSpecs(props).map((spec) => serviceAlarm(this, spec, { prefix: name, topics }));
    this.dashboard = new ServiceDashboard(this, 'Dashboard', { ...props, alarms });
  }

  /**
   * Only alarms of this account may publish, over TLS. No key: CloudWatch cannot use the AWS managed one, and one's own
   * costs a dollar a month. Texts of alarms are not secret.
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
