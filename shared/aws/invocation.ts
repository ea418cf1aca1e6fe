import type { MiddlewareObj } from '@middy/core';
import { enterLogContext } from '#shared/telemetry/log.ts';

/**
 * What belongs to every function, as a middleware: its log lines carry the id of the request they belong to, and what
 * it gathered to tell, if anything, is told at the end of each invocation, however that ends. `invoked` is called as each begins.
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
