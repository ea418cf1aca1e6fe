import { Stack } from 'aws-cdk-lib';
import type { IGrantable } from 'aws-cdk-lib/aws-iam';
import { type IKey, Key } from 'aws-cdk-lib/aws-kms';
import type { IConstruct } from 'constructs';
import type { Config } from './config.ts';
import { grant } from './grantee.ts';

const ID = 'DataKey';

/** Encrypts the data of a stack with the configured key, which its constructs find. */
export function encryptData(stack: Stack, { kmsKeyArn }: Config): void {
  if (kmsKeyArn !== undefined) Key.fromKeyArn(stack, ID, kmsKeyArn);
}

/** Returns the key for data in the construct's stack; `undefined`: AWS chooses keys. */
export const dataKeyOf = (scope: IConstruct): IKey | undefined =>
  Stack.of(scope).node.tryFindChild(ID) as IKey | undefined;

/** Allows the key's use through DynamoDB and SQS, whose own permissions limit the data. */
export function grantDataKey(grantee: IGrantable & IConstruct): void {
  const key = dataKeyOf(grantee);
  if (key === undefined) return;
  // In China, these names end with .cn.
  const services = ['dynamodb', 'sqs'].map((name) => `${name}.${Stack.of(grantee).region}.amazonaws.com*`);
  const conditions = { StringLike: { 'kms:ViaService': services } };
  grant(grantee, ['kms:Decrypt', 'kms:DescribeKey', 'kms:GenerateDataKey'], [key.keyArn], conditions);
}
