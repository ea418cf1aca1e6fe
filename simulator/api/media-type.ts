import type { IncomingMessage } from 'node:http';

/** Returns the request's media type, without parameters; JSON when none is given, as on the real server. */
export const mediaType = (request: IncomingMessage): string =>
  (request.headers['content-type'] ?? 'application/json').replace(/;.*/, '').trim().toLowerCase();
