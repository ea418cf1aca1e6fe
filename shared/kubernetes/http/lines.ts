import { AnswerLimitError, type Held, sizeText } from './answer-limits.ts';

const NEWLINE = 0x0a;

/** A text ended in the middle of a line. */
export class HalfLineError extends Error {
  override readonly name = 'HalfLineError';
}

/**
 * Yields complete lines without newlines, reading only as they are consumed. `held` counts an incomplete one. Throws
 * `AnswerLimitError` beyond `maxBytes`, and `HalfLineError` if the last line has no newline.
 */
export async function* splitLines(
  pieces: AsyncIterable<Buffer>,
  maxBytes: number,
  held?: Held,
): AsyncGenerator<Buffer, void, undefined> {
  let begun: Buffer[] = [];
  let begunBytes = 0;
  for await (const piece of pieces) {
    let from = 0;
    for (;;) {
      const end = piece.indexOf(NEWLINE, from);
      const part = piece.subarray(from, end < 0 ? undefined : end);
      if (begunBytes + part.length > maxBytes) throw tooLong(maxBytes);
      if (end < 0) {
        if (part.length > 0) begun.push(part);
        held?.take(part.length);
        begunBytes += part.length;
        break;
      }
      yield begun.length === 0 ? part : Buffer.concat([...begun, part]);
      held?.release();
      begun = [];
      begunBytes = 0;
      from = end + 1;
    }
  }
  if (begunBytes > 0) throw new HalfLineError();
}

const tooLong = (maxBytes: number): AnswerLimitError =>
  new AnswerLimitError(`it sent a line of more than ${sizeText(maxBytes)}, which no Kubernetes object needs`);
