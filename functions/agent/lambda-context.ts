import type { Context } from 'aws-lambda';

/**
 * The Lambda context for handlers that run in this process. A handler has the same timeout as in Lambda:
 * messages that aren't handled within it are returned to the queue.
 */
export const localContext = (timeoutSeconds: number): Context => ({
  callbackWaitsForEmptyEventLoop: false,
  functionName: 'local',
  functionVersion: '$LATEST',
  invokedFunctionArn: 'arn:aws:lambda:local:000000000000:function:local',
  memoryLimitInMB: '0',
  awsRequestId: 'local',
  logGroupName: 'local',
  logStreamName: 'local',
  getRemainingTimeInMillis: () => timeoutSeconds * 1000,
  done: () => undefined,
  fail: () => undefined,
  succeed: () => undefined,
});
