import type { Context } from 'aws-lambda';

/**
 * What Lambda tells a function of itself, for handlers that run in this process. They get the time they would have
 * there: what does not end within it is given back to its queue.
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
