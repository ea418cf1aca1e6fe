import { Annotations, Stack } from 'aws-cdk-lib';
import { AlarmRule, AlarmState, CompositeAlarm } from 'aws-cdk-lib/aws-cloudwatch';
import { ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Construct } from 'constructs';
import { defined } from '#shared/defined.ts';
import { alarmName } from '#shared/telemetry/alarm-name.ts';
import { alarmTopics, mailTopicName } from './alarm-topics.ts';
import { type AlarmedProps, alarmSpecs } from './alarms.ts';
import { ServiceDashboard } from './dashboard.ts';
import { dataKeyOf } from './data-key.ts';
import { described, notify, serviceAlarm } from './service-alarm.ts';

const NOBODY =
  'nobody: set taintward:alarmEmail to an address, or taintward:alarmTopicArn to an SNS topic, and deploy again';

/** The alarm that may wake somebody: one for an outage, in which many fire. */
const PAGE = { title: 'Evictions impaired', sentence: 'A critical alarm fires, which the reason names.' };

/** The alarms and the dashboard, by which an operator sees and locates failures. */
export class Monitoring extends Construct {
  readonly dashboard: ServiceDashboard;
  /** The recipients of alarms, as text for people. */
  readonly recipients: string;

  constructor(scope: Construct, id: string, props: AlarmedProps) {
    super(scope, id);
    const { name, alarmTopicArn, warningTopicArn, alarmEmail } = props.config;
    if (alarmEmail !== undefined) this.#mailTo(alarmEmail, name);
    const topics = alarmTopics(this, props.config);
    const recipients = [
      alarmTopicArn,
      warningTopicArn,
      alarmEmail && `${alarmEmail}, once the mail that AWS sends there is confirmed`,
    ];
    this.recipients = recipients.filter((each) => each !== undefined).join('; ') || NOBODY;
    if (topics.critical.length === 0)
      Annotations.of(this).addWarningV2(
        'taintward:alarms-tell-nobody',
        `The alarms of ${name} tell ${NOBODY}.`,
      );
    // The page hides what else fails while it lasts, so critical alarms also notify by themselves.
    const common = { prefix: name, topics: { ...topics, critical: topics.warning } };
    const specs = alarmSpecs(props);
    const alarms = specs.map((spec) => serviceAlarm(this, spec, common));
    const critical = alarms.filter((_, index) => specs[index]?.severity === 'critical');
    const page = new CompositeAlarm(this, PAGE.title, {
      compositeAlarmName: alarmName(name, PAGE.title),
      alarmDescription: described(PAGE),
      alarmRule: AlarmRule.anyOf(...critical.map((alarm) => AlarmRule.fromAlarm(alarm, AlarmState.ALARM))),
    });
    notify(page, topics.critical);
    this.dashboard = new ServiceDashboard(this, 'Dashboard', { ...props, alarms: [page, ...alarms] });
  }

  /**
   * Only alarms of this account may publish, over TLS. No key by default: CloudWatch cannot use the AWS managed
   * one. Texts of alarms are not secret.
   */
  #mailTo(address: string, name: string): void {
    const topic = new Topic(this, 'Mail', {
      topicName: mailTopicName(name),
      displayName: name,
      enforceSSL: true,
      ...defined({ masterKey: dataKeyOf(this) }),
    });
    topic.addSubscription(new EmailSubscription(address));
    const { account } = Stack.of(this);
    const alarms = new ServicePrincipal('cloudwatch.amazonaws.com', {
      conditions: { StringEquals: { 'aws:SourceAccount': account } },
    });
    topic.grantPublish(alarms);
  }
}
