import type { MiddlewareObj } from '@middy/core';
import { enterLogContext } from '#shared/telemetry/log.ts';

/**
 * Returns the middleware of every function. It adds the request's ID to log lines, and calls `invoked` when an
 * invocation begins. It calls `flush` at the end of each invocation, whether that succeeds or fails.
 */
export function invocation(telling?: { flush?(): void | Promise<void>; invoked?(): void }): MiddlewareObj {
  const flush = (): void | Promise<void> => telling?.flush?.();
  return {
    before: ({ context }) => {
      enterLogContext({ requestId: context.awsRequestId });
      telling?.invoked?.();
    },
    after: flush,
    onError: flush,
  };
}
