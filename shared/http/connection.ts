import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** Bytes that the parser gets at a time. A client that pipelines requests costs a slice, not a whole buffer of them. */
const SLICE_BYTES = 1024;
/** A request must be received completely, headers and body, within this many looks. */
export const TICKS_TO_ASK = 5;
/** A connection without a request is closed after this many looks, unless its caller is known. */
export const TICKS_TO_BEGIN = 2;
/** A reader that takes nothing of an answer for this many looks counts as gone. */
export const TICKS_TO_READ = 10;

interface Exchange {
  readonly request: IncomingMessage;
  readonly begin: () => void;
}

/**
 * An accepted connection as the HTTP parser sees it. It serves one request at a time; pipelined ones wait unparsed,
 * except those of one slice. Counts how long it is idle, receiving, or answering.
 */
export class Connection extends Duplex {
  /** The caller is authenticated: the connection is kept longer, and isn't closed in favor of unknown callers. */
  isKnown = false;
  isServed = false;
  readonly #socket: Socket;
  readonly #knownTicks: number;
  /** The first request is in progress; the others were in the same slice. */
  readonly #exchanges: Exchange[] = [];
  #received: Buffer | undefined;
  /** An answer has just ended: the next request, already received or not, begins in the next turn of the event loop. */
  #isTurning = false;
  #hasBegun = false;
  #isWanted = false;
  #hasEnded = false;
  #isEndPassed = false;
  #writes = 0;
  #writesAtTick = 0;
  #isWriting = false;
  #ticks = 0;
  #turns = 0;

  /** With TLS, `socket` is the decrypting one. `knownTicks`: looks for which an idle known caller is kept. */
  constructor(socket: Socket, knownTicks: number) {
    super({ readableHighWaterMark: 1 });
    this.#socket = socket;
    this.#knownTicks = knownTicks;
    socket.on('data', (chunk: Buffer) => {
      if (!this.#hasBegun) this.#ticks = 0;
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
      this.#ticks = 0;
      this.#hasBegun = this.#received !== undefined;
      // All other connections have their turn before the next request of this one.
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

  /** Closing it loses nothing: it isn't answering, and a new one has had its chance to send a request. */
  get isDispensable(): boolean {
    return this.#turns === 2 && !this.isAnswering;
  }

  /** Returns true if time is up. Looks are counted, not time: a suspended process cuts no connection. */
  tick(): boolean {
    const isFlowing = !this.#isWriting || this.#writes !== this.#writesAtTick;
    this.#writesAtTick = this.#writes;
    if (this.isAnswering && isFlowing) this.#ticks = 0;
    return ++this.#ticks > this.#maxTicks;
  }

  get #maxTicks(): number {
    if (this.isAnswering) return TICKS_TO_READ;
    if (this.#hasBegun) return TICKS_TO_ASK;
    return this.isKnown ? this.#knownTicks : TICKS_TO_BEGIN;
  }

  /** The first request was received completely: its answer may take long. */
  get isAnswering(): boolean {
    return this.#exchanges[0]?.request.complete === true;
  }

  override _read(): void {
    this.#isWanted = true;
    this.#pass();
  }

  /** Passes one slice on, unless a request is in progress. Reads meanwhile, to notice a disconnect. */
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

  /** Called by the HTTP server after the last answer: written data is still sent. */
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
