import { Stack } from 'aws-cdk-lib';
import { type ITopic, Topic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import type { Config } from './config.ts';

/** The topic of the service's stack that mails alarms; by name, so that other stacks find it. */
export const mailTopicName = (installation: string): string => `${installation}-alarms`;

/** Whom alarms of another stack than the service's tell: those that the service's own tell. */
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
