import { constants, crc32, deflateRawSync } from 'node:zlib';

/** Stands in a template object where a value goes in, inside a text. */
export const hole = (name: string): string => `@{${name}}@`;
/** Stands in a template object as a whole value: JSON goes in. */
export const jsonHole = (name: string): string => `@{!${name}}@`;

const HOLE = /"@\{!(\w+)\}@"|@\{(\w+)\}@/;

/** What goes into the holes: text that needs no escaping, or JSON. ASCII only. */
export type Values = Readonly<Record<string, string>>;

/**
 * An object's JSON with holes. Everything around the holes is made, and compressed, once: an object of 11 KB costs what
 * copying it costs, so a million of them need neither memory nor a day.
 */
export class Template {
  /** Constant pieces and names of holes by turns, beginning with a piece. */
  readonly #pieces: readonly string[];
  readonly #deflated: readonly Buffer[];

  constructor(object: unknown) {
    this.#pieces = JSON.stringify(object)
      .split(HOLE)
      // Each match yields both groups, one of which took no part.
      .filter((part) => part !== undefined);
    this.#deflated = this.#pieces.map((piece, index) =>
      index % 2 === 0 ? deflated(piece) : Buffer.alloc(0),
    );
  }

  /** The object's JSON. */
  text(values: Values): string {
    let text = '';
    for (const [index, piece] of this.#pieces.entries()) text += index % 2 === 0 ? piece : values[piece];
    return text;
  }

  /** The same as raw deflate blocks, none of them the last. */
  blocks(values: Values): readonly Buffer[] {
    return this.#pieces.map((piece, index) =>
      index % 2 === 0 ? (this.#deflated[index] ?? Buffer.alloc(0)) : stored(values[piece] ?? ''),
    );
  }
}

/** Blocks that refer to nothing before them and end at a byte's end, so that any others may follow. */
const deflated = (text: string): Buffer =>
  deflateRawSync(text, { level: 6, finishFlush: constants.Z_FULL_FLUSH });

/** A block of type 0: as it is. */
function stored(text: string): Buffer {
  const block = Buffer.allocUnsafe(5 + text.length);
  block.writeUInt8(0, 0);
  block.writeUInt16LE(text.length, 1);
  block.writeUInt16LE(~text.length & 0xffff, 3);
  block.write(text, 5, 'latin1');
  return block;
}

/** One gzip stream made of blocks that are there already. */
export class GzipStream {
  #crc = 0;
  #length = 0;

  /** What comes first. */
  readonly head = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);

  /** Text that is no template's. */
  plain(text: string): Buffer {
    this.count(text);
    return stored(text);
  }

  /** Counts text whose blocks are sent. */
  count(text: string): void {
    this.#crc = crc32(text, this.#crc);
    this.#length += text.length;
  }

  /** What comes last: an empty last block and the checksum. */
  tail(): Buffer {
    const tail = Buffer.alloc(10);
    tail.writeUInt8(3, 0);
    tail.writeUInt32LE(this.#crc, 2);
    tail.writeUInt32LE(this.#length % 2 ** 32, 6);
    return tail;
  }
}
