import type * as z from 'zod';
import { firstFault, readAs } from '#shared/text/read-as.ts';

/** Another attempt cannot succeed, so the message belongs in the dead-letter queue. */
export class RejectedMessageError extends Error {
  override readonly name: string = 'RejectedMessageError';
}

/** A message that is unreadable. */
export class MalformedMessageError extends RejectedMessageError {
  override readonly name = 'MalformedMessageError';
}

/** Throws `MalformedMessageError`: one sentence with `what` kind of message it is and the first invalid field. */
export function parseMessage<T>(what: string, schema: z.ZodType<T>, body: string): T {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    throw new MalformedMessageError(`${what} rejected: message: is not JSON`);
  }
  const found = readAs(schema, json);
  if (found.success) return found.data;
  const { field, fault } = firstFault(found.error);
  throw new MalformedMessageError(`${what} rejected: ${field || 'message'}: ${fault}`);
}
