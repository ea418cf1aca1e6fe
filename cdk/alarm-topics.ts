import { Stack } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import type { Condition } from '#shared/conditions/conditions.ts';
import type { Config } from './config.ts';

/** The ARNs of the topics that alarms notify, by severity. */
export type AlarmTopics = Readonly<Record<Condition['severity'], readonly string[]>>;

export const mailTopicName = (installation: string): string => `${installation}-alarms`;

/** Returns the topics of the settings. A topic that is alone gets all alarms. */
export function alarmTopics(scope: Construct, config: Config): AlarmTopics {
  const { name, alarmTopicArn, warningTopicArn, alarmEmail } = config;
  const mail = alarmEmail && Stack.of(scope).formatArn({ service: 'sns', resource: mailTopicName(name) });
  const to = (arn: string | undefined) => [arn, mail].filter((each) => each !== undefined);
  return { critical: to(alarmTopicArn ?? warningTopicArn), warning: to(warningTopicArn ?? alarmTopicArn) };
}
