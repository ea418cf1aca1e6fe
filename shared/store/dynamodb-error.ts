import { DynamoDBServiceException, TransactionCanceledException } from '@aws-sdk/client-dynamodb';
import { StoreError } from './store.ts';

const NO_CREDENTIALS = new Set(['CredentialsProviderError', 'TokenProviderError']);
const NO_RIGHT = new Set([
  'AccessDeniedException',
  'UnrecognizedClientException',
  'IncompleteSignatureException',
  'InvalidSignatureException',
  'MissingAuthenticationTokenException',
  'ExpiredTokenException',
]);
/** Names of errors, and codes of a cancelled transaction's reasons. */
const THROTTLED = new Set([
  'ProvisionedThroughputExceededException',
  'ProvisionedThroughputExceeded',
  'RequestLimitExceeded',
  'ThrottlingException',
  'ThrottlingError',
]);

/** A failed call to DynamoDB as one sentence that names the table and says what to do. */
export function dynamoDbStoreError(error: unknown, tableName: string): StoreError {
  const cause = error instanceof Error ? error : new Error(String(error));
  return new StoreError(sentence(cause, `DynamoDB table ${tableName}`), { cause });
}

function sentence(error: Error, table: string): string {
  const { name, message } = error;
  if (name === 'ResourceNotFoundException') {
    return `${table} (or its index) does not exist in this account and region: deploy the stack, or correct the table's name (taintward --table, TAINTWARD_TABLE) or the region (AWS_REGION).`;
  }
  // The SDK's errors about regions have no names of their own.
  if (message === 'Region is missing') {
    return `No AWS region for ${table}: set AWS_REGION, or AWS_PROFILE to a profile that has one.`;
  }
  if (message.startsWith('Region not accepted')) {
    return `The AWS region for ${table} is none: correct AWS_REGION, or the region of the profile.`;
  }
  if (NO_CREDENTIALS.has(name)) {
    return `No AWS credentials for ${table}: give the process a role, a profile (AWS_PROFILE) or a key (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) (${message}).`;
  }
  if (NO_RIGHT.has(name)) {
    return `AWS refuses the call to ${table}: check the credentials and the role's rights (${name}: ${message}).`;
  }
  if (codesOf(error).some((code) => THROTTLED.has(code))) {
    return `${table} takes no more for now: the work is retried; if it lasts, raise the table's limits (${name}: ${message}).`;
  }
  if (name === 'TransactionConflictException') {
    return `${table}: others wrote to the same item in every attempt: the work is retried (${message}).`;
  }
  if (error instanceof DynamoDBServiceException) {
    return `${table} refuses the call: check that the stack is of this release (${name}: ${message}).`;
  }
  return `${table} cannot be reached: check the region, the endpoint and the network (${name}: ${message}).`;
}

function codesOf(error: Error): readonly string[] {
  const reasons = error instanceof TransactionCanceledException ? error.CancellationReasons : undefined;
  return [error.name, ...(reasons ?? []).flatMap(({ Code }) => Code ?? [])];
}
