import * as z from 'zod';
import { badRequest } from './status.ts';

/** Where a list goes on: behind a key, as of a version. */
const continuation = z.object({ version: z.int().nonnegative(), after: z.string() });
export type Continuation = z.infer<typeof continuation>;

/** As the opaque text that clients hand back. */
export const encodeContinue = (token: Continuation): string =>
  Buffer.from(JSON.stringify(token)).toString('base64url');

/** Throws 400 for what is no token of ours. */
export function parseContinue(text: string): Continuation {
  try {
    return continuation.parse(JSON.parse(Buffer.from(text, 'base64url').toString()));
  } catch {
    throw badRequest('invalid continue token: start a new list without the continue parameter');
  }
}
