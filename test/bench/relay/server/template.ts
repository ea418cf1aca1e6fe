import { constants, crc32, deflateRawSync } from 'node:zlib';

/** Returns a placeholder in a template object for a value inside a text. */
export const hole = (name: string): string => `@{${name}}@`;
/** Returns a placeholder in a template object for a whole JSON value. */
export const jsonHole = (name: string): string => `@{!${name}}@`;

const HOLE = /"@\{!(\w+)\}@"|@\{(\w+)\}@/;

/** The values of the holes: text that needs no escaping, or JSON. ASCII only. */
export type Values = Readonly<Record<string, string>>;

/**
 * An object's JSON with holes. The constant parts are serialized and compressed once. An object of 11 KB then costs
 * only its copy, so a million of them need neither much memory nor much time.
 */
export class Template {
  /** Alternating constant pieces and names of holes, beginning with a piece. */
  readonly #pieces: readonly string[];
  readonly #deflated: readonly Buffer[];

  constructor(object: unknown) {
    this.#pieces = JSON.stringify(object)
      .split(HOLE)
      // Each match yields both groups, but only one of them matched.
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

  /** Returns the same as raw deflate blocks, none of them the last. */
  blocks(values: Values): readonly Buffer[] {
    return this.#pieces.map((piece, index) =>
      index % 2 === 0 ? (this.#deflated[index] ?? Buffer.alloc(0)) : stored(values[piece] ?? ''),
    );
  }
}

/**
 * Returns blocks that refer to nothing before them and end at a byte boundary, so that any others may follow. With its
 * own Huffman code for each of these short blocks, a list would cost its reader more than twice as much as one of real
 * pods, which has a few long blocks.
 */
const deflated = (text: string): Buffer =>
  deflateRawSync(text, { level: 6, strategy: constants.Z_FIXED, finishFlush: constants.Z_FULL_FLUSH });

/** Returns a block of type 0, which is uncompressed. */
function stored(text: string): Buffer {
  const block = Buffer.allocUnsafe(5 + text.length);
  block.writeUInt8(0, 0);
  block.writeUInt16LE(text.length, 1);
  block.writeUInt16LE(~text.length & 0xffff, 3);
  block.write(text, 5, 'latin1');
  return block;
}

/** One gzip stream that consists of existing blocks. */
export class GzipStream {
  #crc = 0;
  #length = 0;

  /** The header of the stream. */
  readonly head = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);

  /** Returns the block of a text outside of templates. */
  plain(text: string): Buffer {
    this.count(text);
    return stored(text);
  }

  /** Adds a sent text to length and checksum. */
  count(text: string): void {
    this.#crc = crc32(text, this.#crc);
    this.#length += text.length;
  }

  /** Returns the end of the stream: an empty last block and the checksum. */
  tail(): Buffer {
    const tail = Buffer.alloc(10);
    tail.writeUInt8(3, 0);
    tail.writeUInt32LE(this.#crc, 2);
    tail.writeUInt32LE(this.#length % 2 ** 32, 6);
    return tail;
  }
}
