import type * as z from 'zod';
import { firstFault, readAs } from '#shared/text/read-as.ts';

/** Another attempt cannot succeed, so the message belongs in the dead-letter queue. */
export class RejectedMessageError extends Error {
  override readonly name = 'RejectedMessageError';
}

/** Throws `RejectedMessageError`: one sentence with `what` kind of message it is and the first invalid field. */
export function parseMessage<T>(what: string, schema: z.ZodType<T>, body: string): T {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    throw new RejectedMessageError(`${what} rejected: message: is not JSON`);
  }
  const found = readAs(schema, json);
  if (found.success) return found.data;
  const { field, fault } = firstFault(found.error);
  throw new RejectedMessageError(`${what} rejected: ${field || 'message'}: ${fault}`);
}
