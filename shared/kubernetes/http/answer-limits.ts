import type { AnswerKind, Call } from './call.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Limits of one response in bytes: as received, and again after decompression. Beyond, its call fails. */
export const ANSWER_BYTES = {
  /** Access reviews, evictions, Events, the version: a few hundred bytes each. */
  short: 64 * KIB,
  /** A `Status`. Its message may repeat fields of the request, but no real one has come near this. */
  refusal: 256 * KIB,
  /**
   * An object or watch event. etcd accepts 1.5 MiB (`--max-request-bytes`), and the API server writes `<` as `\u003c`:
   * a pod with 1.4 MB of these has 8.4 MB as JSON (Kubernetes 1.36). A lower limit would let its author prevent its
   * mark and deletion, or end the watch of all pods.
   */
  object: 10 * MIB,
  /** One page. 500 pods of 12 KB take 6 MB, 50 nodes 1 MB. */
  list: 32 * MIB,
} as const satisfies Readonly<Record<AnswerKind, number>>;

/** Limits of structure: 31 MB of JSON can contain ten million objects, which overflow a heap of 256 MB. */
export const ANSWER_STRUCTURE = {
  /**
   * Structural characters (`{`, `[`, `:`, `,`) in a text parsed as one: each takes at most 85 bytes of heap (measured).
   * An object of etcd's 1.5 MiB has fewer.
   */
  characters: 1.5 * MIB,
  /** Nesting depth of objects and arrays. The API server itself accepts no deeper JSON. */
  depth: 10_000,
  /** Items of one list. Each takes about 700 bytes of the heap, and the smallest real pod takes 1 KB of the response. */
  items: 50_000,
  /** Tolerations, labels, annotations, finalizers, and taints of one list: about 100 bytes each in the kept objects. */
  kept: 1_000_000,
} as const;

/** Limits, in bytes, of all pending responses on the connections to one API server: those that arrive or are being parsed. */
export const UNDER_WAY_BYTES = {
  /** All responses together. Four pages of pods fit twice, each with its compressed form. */
  cluster: 64 * MIB,
  /** The first bytes of each response, which don't count: large responses must not fail ordinary calls. */
  free: 256 * KIB,
} as const;

export const answerKind = ({ verb, answer }: Pick<Call, 'verb' | 'answer'>): AnswerKind =>
  answer ?? (verb === 'list' ? 'list' : 'object');

/** A response exceeded a limit. The message continues a sentence about the API server. */
export class AnswerLimitError extends Error {
  override readonly name = 'AnswerLimitError';
}

export const tooManyBytes = (limit: number, where = ''): AnswerLimitError =>
  new AnswerLimitError(`its answer has more than ${sizeText(limit)}${where}`);

export const sizeText = (bytes: number): string =>
  bytes < MIB ? `${bytes / KIB} KiB` : `${bytes / MIB} MiB`;

/** Counts the bytes of all pending responses of one API server. */
export class UnderWay {
  #bytes = 0;

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

/** The bytes of one response that are in memory. */
export class Held {
  readonly #share: (bytes: number) => void;
  #bytes = 0;
  #shared = 0;

  /** `share`: adds bytes to the total of all responses; a negative number subtracts. Throws if there is no room. */
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

  release(): void {
    this.#share(-this.#shared);
    this.#bytes = 0;
    this.#shared = 0;
  }
}
