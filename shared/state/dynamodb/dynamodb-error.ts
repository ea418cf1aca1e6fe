import {
  DynamoDBServiceException,
  TransactionCanceledException,
  TransactionInProgressException,
} from '@aws-sdk/client-dynamodb';
import { StoreError } from '../store.ts';

const NO_CREDENTIALS = new Set(['CredentialsProviderError', 'TokenProviderError']);
const NO_RIGHT = new Set([
  'AccessDeniedException',
  'UnrecognizedClientException',
  'IncompleteSignatureException',
  'InvalidSignatureException',
  'MissingAuthenticationTokenException',
  'ExpiredTokenException',
]);
/** Names of errors, and codes of a canceled transaction's reasons. */
const THROTTLED = new Set([
  'ProvisionedThroughputExceededException',
  'ProvisionedThroughputExceeded',
  'RequestLimitExceeded',
  'ThrottlingException',
  'ThrottlingError',
]);

/** Returns the error of a failed call to DynamoDB: one sentence that names the table, followed by the fix. */
export function dynamoDbStoreError(error: unknown, tableName: string): StoreError {
  const cause = error instanceof Error ? error : new Error(String(error));
  return new StoreError(sentence(cause, `DynamoDB table ${tableName}`), { cause });
}

function sentence(error: Error, table: string): string {
  const { name, message } = error;
  if (name === 'ResourceNotFoundException') {
    return `${table} (or its index) does not exist in this account and region. Deploy the stack, or correct the name of the table (taintward --table, TAINTWARD_TABLE) or the region (AWS_REGION).`;
  }
  // The SDK's errors about regions don't have names of their own.
  if (message === 'Region is missing') {
    return `No AWS region for ${table}. Set AWS_REGION, or set AWS_PROFILE to a profile with a region.`;
  }
  if (message.startsWith('Region not accepted')) {
    return `The AWS region for ${table} is invalid. Correct AWS_REGION, or the region of the profile.`;
  }
  if (message.includes('uv_os_homedir')) {
    return `No AWS configuration for ${table}: this user has no home directory. Set HOME.`;
  }
  if (NO_CREDENTIALS.has(name)) {
    return `No AWS credentials for ${table} (${message}). Give the process a role, a profile (AWS_PROFILE), or a key (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY).`;
  }
  if (NO_RIGHT.has(name)) {
    return `AWS denies access to ${table} (${name}: ${message}). Check the credentials and the permissions of the role.`;
  }
  if (codesOf(error).some((code) => THROTTLED.has(code))) {
    return `${table} is throttled (${name}: ${message}). The work is retried. If this lasts, raise the table's limits.`;
  }
  if (name === 'TransactionConflictException') {
    return `Other writes to ${table} changed the same item in every attempt (${message}). The work is retried.`;
  }
  if (error instanceof DynamoDBServiceException) {
    return `${table} rejects the call (${name}: ${message}). Check that the stack is of this release.`;
  }
  return `${table} cannot be reached (${name}: ${message}). Check the region, the endpoint, and the network.`;
}

function codesOf(error: Error): readonly string[] {
  const reasons = error instanceof TransactionCanceledException ? error.CancellationReasons : undefined;
  return [error.name, ...(reasons ?? []).flatMap(({ Code }) => Code ?? [])];
}

/** Reports whether others write the same items: one is not as expected, or will not be. */
export function lostRace(error: unknown): boolean {
  if (error instanceof TransactionInProgressException) return true;
  if (!(error instanceof TransactionCanceledException)) return false;
  return (error.CancellationReasons ?? []).some(
    ({ Code }) => Code === 'ConditionalCheckFailed' || Code === 'TransactionConflict',
  );
}
