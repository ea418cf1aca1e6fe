import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** The parser gets so many bytes at a time: whoever pipelines requests costs a slice, and not a whole buffer of them. */
const SLICE_BYTES = 1024;
/** A request is received completely within this many looks, headers and body. */
const LOOKS_TO_ASK = 5;
/** A connection without a request is closed after this many looks, unless its caller is known. */
export const LOOKS_TO_BEGIN = 2;
/** A reader that takes nothing of an answer for this many looks is gone. */
const LOOKS_TO_READ = 10;

interface Exchange {
  readonly request: IncomingMessage;
  readonly begin: () => void;
}

/**
 * One accepted connection as the HTTP parser sees it. It serves one request at a time: those that the client pipelines wait
 * unparsed, apart from the few of one slice. It knows how long it has been idle, asked, or answered.
 */
export class Connection extends Duplex {
  /** The caller has shown who they are: the connection is kept longer, and closed for no stranger. */
  isKnown = false;
  /** The caller had an answer of this connection. */
  isServed = false;
  readonly #socket: Socket;
  readonly #knownLooks: number;
  /** Under way is the first; the others were in the same slice. */
  readonly #exchanges: Exchange[] = [];
  #received: Buffer | undefined;
  /** An answer has just ended: the next request begins with the next turn, whether it is here already or arrives meanwhile. */
  #isTurning = false;
  #hasBegun = false;
  #isWanted = false;
  #hasEnded = false;
  #isEndPassed = false;
  #writes = 0;
  #writesAtLook = 0;
  #isWriting = false;
  #looks = 0;
  #turns = 0;

  /** Over TLS, `socket` is the one that decrypts. `knownLooks`: so long it is kept idle once its caller is known. */
  constructor(socket: Socket, knownLooks: number) {
    super({ readableHighWaterMark: 1 });
    this.#socket = socket;
    this.#knownLooks = knownLooks;
    socket.on('data', (chunk: Buffer) => {
      if (!this.#hasBegun) this.#looks = 0;
      this.#hasBegun = true;
      this.#received = this.#received ? Buffer.concat([this.#received, chunk]) : chunk;
      this.#pass();
    });
    socket.on('end', () => {
      this.#hasEnded = true;
      this.#pass();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => this.destroy());
    const turn = () => {
      if (++this.#turns < 2) setImmediate(turn);
    };
    setImmediate(turn);
  }

  /** Calls `begin` when the requests before this one have been answered. */
  serve(request: IncomingMessage, response: ServerResponse, begin: () => void): void {
    this.#exchanges.push({ request, begin });
    response.once('close', () => {
      this.#exchanges.shift();
      this.isServed = true;
      this.#looks = 0;
      this.#hasBegun = this.#received !== undefined;
      // Everybody else has their turn before the next request of this connection.
      this.#isTurning = true;
      setImmediate(() => this.#next());
    });
    if (this.#exchanges.length === 1 && !this.#isTurning) begin();
  }

  #next(): void {
    this.#isTurning = false;
    if (this.destroyed) return;
    this.#exchanges[0]?.begin();
    this.#pass();
  }

  /** Nothing is lost to anybody when it is closed; a new one had its chance to send a request. */
  get isDispensable(): boolean {
    return this.#turns === 2 && !this.isAnswering;
  }

  /** Counts one look; true: its time is up. Counted, and not timed, so that a process that stood still cuts nobody. */
  look(): boolean {
    const isFlowing = !this.#isWriting || this.#writes !== this.#writesAtLook;
    this.#writesAtLook = this.#writes;
    if (this.isAnswering && isFlowing) this.#looks = 0;
    return ++this.#looks > this.#mostLooks;
  }

  get #mostLooks(): number {
    if (this.isAnswering) return LOOKS_TO_READ;
    if (this.#hasBegun) return LOOKS_TO_ASK;
    return this.isKnown ? this.#knownLooks : LOOKS_TO_BEGIN;
  }

  /** The first request is here completely: its answer may last. */
  get isAnswering(): boolean {
    return this.#exchanges[0]?.request.complete === true;
  }

  override _read(): void {
    this.#isWanted = true;
    this.#pass();
  }

  /** Hands one slice on, unless a request is under way. It goes on reading meanwhile, to notice a caller who leaves. */
  #pass(): void {
    const isHeld = this.isAnswering || this.#exchanges.length > 1;
    if (this.#received && this.#isWanted && !isHeld) {
      const slice = this.#received.subarray(0, SLICE_BYTES);
      this.#received =
        slice.length < this.#received.length ? this.#received.subarray(slice.length) : undefined;
      this.#isWanted = false;
      this.push(slice);
    }
    if (this.#received) this.#socket.pause();
    else if (!this.#hasEnded) this.#socket.resume();
    else if (!this.#isEndPassed) {
      this.#isEndPassed = true;
      this.push(null);
    }
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this._writev([{ chunk }], done);
  }

  override _writev(
    chunks: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    this.#isWriting = true;
    const written = (error?: Error | null) => {
      this.#isWriting = false;
      this.#writes += 1;
      done(error);
    };
    this.#socket.cork();
    for (const { chunk } of chunks.slice(0, -1)) this.#socket.write(chunk);
    for (const { chunk } of chunks.slice(-1)) this.#socket.write(chunk, written);
    this.#socket.uncork();
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  /** What the HTTP server calls after the last answer: what was written still goes out. */
  destroySoon(): void {
    this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
