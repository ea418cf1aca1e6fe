import { promisify } from 'node:util';
import { gunzip, gunzipSync } from 'node:zlib';
import { AnswerLimitError, type Held, tooManyBytes } from './answer-limits.ts';
import type { Answer } from './sockets.ts';

const unzip = promisify(gunzip);
/** Largest response that is unzipped synchronously: that takes about 1 ms. Larger ones are unzipped asynchronously. */
const SMALL_ZIP_BYTES = 256 * 1024;
/** zlib's smallest chunk size. */
const MIN_CHUNK_BYTES = 64;

/** `limit`: bytes received, and decompressed; `held` counts both. Rejects with `AnswerLimitError` beyond it. */
export async function wholeBody(answer: Answer, limit: number, held: Held): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of answer.body) {
    size += piece.length;
    if (size > limit) throw tooManyBytes(limit);
    held.take(piece.length);
    pieces.push(piece);
  }
  const bytes = Buffer.concat(pieces);
  return answer.headers['content-encoding'] === 'gzip' ? unzipped(bytes, limit, held) : bytes;
}

/** Reads to the end, so that the next call finds the connection free. Rejects with `AnswerLimitError`. */
export async function discard(answer: Answer, limit: number): Promise<void> {
  let size = 0;
  for await (const piece of answer.body) {
    size += piece.length;
    if (size > limit) throw tooManyBytes(limit);
  }
}

async function unzipped(bytes: Buffer, limit: number, held: Held): Promise<Buffer> {
  const size = unzippedBytes(bytes);
  if (size > limit) throw tooManyBytes(limit);
  held.take(size);
  const room = Math.max(size, MIN_CHUNK_BYTES);
  const options = { maxOutputLength: room, chunkSize: room };
  try {
    return bytes.length <= SMALL_ZIP_BYTES ? gunzipSync(bytes, options) : await unzip(bytes, options);
  } catch (error) {
    const isLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
    throw isLarge
      ? new AnswerLimitError('its answer, decompressed, is larger than its gzip trailer says')
      : error;
  }
}

const unzippedBytes = (zipped: Buffer): number =>
  zipped.length < 4 ? 0 : zipped.readUInt32LE(zipped.length - 4);
