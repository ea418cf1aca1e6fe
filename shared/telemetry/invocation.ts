import type { MiddlewareObj } from '@middy/core';
import { enterLogContext } from './log.ts';

/**
 * What belongs to every function, as a middleware: its log lines carry the id of the request they belong to, and its
 * metrics, if it has any, are written at the end of each invocation, however that ends.
 */
export function invocation(metrics?: { flush(): void }): MiddlewareObj {
  const flush = (): void => metrics?.flush();
  return {
    before: ({ context }) => enterLogContext({ requestId: context.awsRequestId }),
    after: flush,
    onError: flush,
  };
}
