import type * as z from 'zod';
import { firstFault } from '#shared/text/first-fault.ts';
import { readAs } from '#shared/text/read-as.ts';

/** A message that is not to be done. Sending it again cannot help: it belongs into the dead-letter queue. */
export class RejectedMessageError extends Error {
  override readonly name: string = 'RejectedMessageError';
}

/** A message that cannot be read. */
export class MalformedMessageError extends RejectedMessageError {
  override readonly name = 'MalformedMessageError';
}

/**
 * Reads a message's JSON by its schema. Throws `MalformedMessageError` with one sentence that names the first field
 * at fault; `what` names the kind of message in it.
 */
export function parseMessage<T>(what: string, schema: z.ZodType<T>, body: string): T {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    throw new MalformedMessageError(`${what} refused: message: is not JSON`);
  }
  const found = readAs(schema, json);
  if (found.success) return found.data;
  const { field, fault } = firstFault(found.error);
  throw new MalformedMessageError(`${what} refused: ${field || 'message'}: ${fault}`);
}
