import type { AnswerKind, Call } from './call.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/**
 * Limits of one answer in bytes, by kind of answer. Bytes count as they arrive, and again after decompression. An answer
 * beyond its limit fails its call.
 */
export const ANSWER_BYTES = {
  /** Access reviews, evictions, Events, the version: a few hundred bytes each. */
  short: 64 * KIB,
  /** A `Status`. Its message may repeat fields of the request, but no real one has come near this. */
  refusal: 256 * KIB,
  /**
   * One object: the answer to a get, a write, a mark and a delete, and an event of a watch. etcd takes objects of 1.5 MiB
   * (`--max-request-bytes`), and the API server writes a character such as `<` as the six of `\u003c`: a pod with 1.4 MB of
   * those has 8.4 MB as JSON (measured on Kubernetes 1.36). A lower limit would let the author of such a pod keep it from
   * being marked and deleted, or end the watch of everybody's pods.
   */
  object: 10 * MIB,
  /** One page. 500 pods of 12 KB take 6 MB, 50 nodes 1 MB. */
  list: 32 * MIB,
} as const satisfies Readonly<Record<AnswerKind, number>>;

/**
 * Limits of what one answer holds, whatever its bytes: a JSON text of 31 MB can hold ten million objects, which overflow a
 * heap of 256 MB.
 */
export const ANSWER_STRUCTURE = {
  /**
   * Structural characters (`{`, `[`, `:`, `,`) in what is parsed at once: an object, an item of a list, an event. Parsed, each takes
   * at most 85 bytes of the heap (measured). An object of etcd's 1.5 MiB has fewer: none of its bytes becomes more than one
   * of them.
   */
  characters: 1.5 * MIB,
  /** Objects and arrays in one another. The API server itself reads no deeper JSON. */
  depth: 10_000,
  /** Items of one list. Each takes some 700 bytes of the heap, and the smallest real pod 1 KB of the answer. */
  items: 50_000,
  /** Tolerations, labels, finalizers and taints of all items of one list: what is kept of them takes some 100 bytes each. */
  kept: 1_000_000,
} as const;

/** Limits, in bytes, of all answers under way on the connections to one API server: those that arrive or are being parsed. */
export const UNDER_WAY_BYTES = {
  /** Together. Four pages of pods fit twice, each with its compressed form. */
  cluster: 64 * MIB,
  /** The first bytes of each answer, which don't count: large answers must not fail ordinary calls. */
  free: 256 * KIB,
} as const;

/** The kind of a successful answer to a call. */
export const answerKind = ({ verb, answer }: Pick<Call, 'verb' | 'answer'>): AnswerKind =>
  answer ?? (verb === 'list' ? 'list' : 'object');

/** An answer is beyond a limit. Its message continues a sentence about the API server. */
export class AnswerLimitError extends Error {
  override readonly name = 'AnswerLimitError';
}

export const tooManyBytes = (limit: number, where = ''): AnswerLimitError =>
  new AnswerLimitError(`its answer has more than ${sizeText(limit)}${where}`);

export const sizeText = (bytes: number): string =>
  bytes < MIB ? `${bytes / KIB} KiB` : `${bytes / MIB} MiB`;

/** Counts the bytes of all answers under way from one API server. */
export class UnderWay {
  #bytes = 0;

  /** For one answer. */
  hold(): Held {
    return new Held((bytes) => {
      if (this.#bytes + bytes > UNDER_WAY_BYTES.cluster) {
        const limit = sizeText(UNDER_WAY_BYTES.cluster);
        throw new AnswerLimitError(`its answers under way have more than ${limit} together`);
      }
      this.#bytes += bytes;
    });
  }
}

/** The bytes of one answer that are in memory. */
export class Held {
  readonly #share: (bytes: number) => void;
  #bytes = 0;
  #shared = 0;

  /** `share`: adds bytes, fewer than none when they are gone, to what all answers hold; throws when there is no room. */
  constructor(share: (bytes: number) => void) {
    this.#share = share;
  }

  /** Adds bytes that arrived. Throws `AnswerLimitError`. */
  take(bytes: number): void {
    const shared = Math.max(0, this.#bytes + bytes - UNDER_WAY_BYTES.free);
    this.#share(shared - this.#shared);
    this.#bytes += bytes;
    this.#shared = shared;
  }

  /** All of them are gone. */
  release(): void {
    this.#share(-this.#shared);
    this.#bytes = 0;
    this.#shared = 0;
  }
}
