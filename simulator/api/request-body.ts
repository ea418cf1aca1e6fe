import type { IncomingMessage } from 'node:http';
import { parseJson } from '../objects/json.ts';
import { badRequest, StatusError } from '../objects/status.ts';
import { mediaType } from './media-type.ts';
import { PATCHES } from './patches.ts';
import { PROTOBUF, parseProtobuf } from './protobuf.ts';
import type { ObjectCall } from './request.ts';

const WHOLE: readonly string[] = ['application/json', PROTOBUF];

/** The real server's limit: 3 MiB (`MaxRequestBodyBytes`). */
const MAX_BODY_BYTES = 3 * 1024 * 1024;

/**
 * Returns the request's parsed body, with exact 64-bit integers; `undefined` when there is none. Throws 415 for a media type that
 * is not accepted, 413 for a body that is too large, and 400 for one that is not JSON.
 */
export async function readBody({ request }: Pick<ObjectCall, 'request'>): Promise<unknown> {
  const accepted = request.method === 'PATCH' ? Object.keys(PATCHES) : WHOLE;
  const bytes = await readBytes(request);
  if (bytes.length === 0) return undefined;
  if (!accepted.includes(mediaType(request))) {
    const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`;
    throw new StatusError(415, 'UnsupportedMediaType', message);
  }
  if (mediaType(request) === PROTOBUF) return parseProtobuf(bytes);
  const text = bytes.toString();
  if (text.trim() === '') return undefined;
  try {
    return parseJson(text);
  } catch {
    throw badRequest('the body of the request is not JSON');
  }
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MAX_BODY_BYTES) {
      const message = `Request entity too large: limit is ${MAX_BODY_BYTES}`;
      throw new StatusError(413, 'RequestEntityTooLarge', message);
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}
