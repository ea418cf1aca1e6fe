import { Stack } from 'aws-cdk-lib';
import { type ITopic, Topic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import type { Config } from './config.ts';

export const mailTopicName = (installation: string): string => `${installation}-alarms`;

/** Returns the topics for alarms of another stack than the service's: the topics of the service's own alarms. */
export function topicsBeside(
  scope: Construct,
  { name, alarmTopicArn, alarmEmail }: Config,
): readonly ITopic[] {
  const mail = Stack.of(scope).formatArn({ service: 'sns', resource: mailTopicName(name) });
  return [
    ...(alarmTopicArn === undefined ? [] : [Topic.fromTopicArn(scope, 'Topic', alarmTopicArn)]),
    ...(alarmEmail === undefined ? [] : [Topic.fromTopicArn(scope, 'Mail', mail)]),
  ];
}
