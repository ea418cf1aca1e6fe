import type { ServerResponse } from 'node:http';
import { type FleetStatus, statusOf } from '#shared/operations/look/status.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import type { Clock } from '#shared/time/clock.ts';
import { durationText } from '#shared/time/duration.ts';
import { pause } from '#shared/time/pause.ts';
import { endsWithin } from '#shared/time/stopping.ts';
import type { LiveEvents } from './api.ts';
import type { FleetView, Seen } from './fleet-view.ts';

/** Interval between reads while a listener is connected. */
const READ_MS = 1_000;
/** Time after which a read counts as failed. It continues. */
const READ_WITHIN_MS = 10_000;
/** Interval of the event by which both ends detect a lost connection. The page waits for two of them. */
const HEARTBEAT_MS = 5_000;
/** Backlog at which a slow listener is disconnected. It must connect again. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;
export const MAX_LISTENERS = 32;

export interface LiveDeps {
  readonly view: FleetView;
  readonly clock: Clock;
  /** Absent: every second. */
  readonly readMs?: number;
}

/** Sends changes as server-sent events. All listeners share one reader, which stops when none is connected. */
export class Live {
  readonly #view: FleetView;
  readonly #clock: Clock;
  readonly #readMs: number;
  readonly #listeners = new Map<ServerResponse, { status: string; version?: number }>();
  #reading = false;

  constructor({ view, clock, readMs = READ_MS }: LiveDeps) {
    this.#view = view;
    this.#clock = clock;
    this.#readMs = readMs;
    view.listen((seen) => {
      if (this.#listeners.size === 0) return;
      const status = statusOf(seen);
      for (const [response] of this.#listeners) {
        this.#sendPending(response, seen);
        this.#sendStatus(response, status);
      }
    });
  }

  /** Sends state and changes until the response closes or `ended` aborts. `false`: too many listeners. */
  async join(response: ServerResponse, ended: AbortSignal): Promise<boolean> {
    if (this.#listeners.size >= MAX_LISTENERS) return false;
    const seen = await this.#view.read();
    // Meanwhile, others may have joined, and this listener may have disconnected.
    if (this.#listeners.size >= MAX_LISTENERS) return false;
    if (response.destroyed || ended.aborted) {
      response.destroy();
      return true;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`retry: ${READ_MS}\n\n`);
    this.#listeners.set(response, { status: '' });
    const sendTime = () => this.#send(response, 'time', { at: this.#clock.now() });
    sendTime();
    const heartbeat = setInterval(sendTime, HEARTBEAT_MS);
    const leave = () => {
      clearInterval(heartbeat);
      ended.removeEventListener('abort', end);
      this.#listeners.delete(response);
    };
    const end = () => {
      this.#send(response, 'end', {
        reason: 'To open the console again, run taintward console, or type console at npm start.',
      });
      leave();
      response.end();
    };
    ended.addEventListener('abort', end);
    response.once('close', leave);
    this.#sendStatus(response, statusOf(seen));
    this.#sendPending(response, seen);
    void this.#read();
    return true;
  }

  async #read(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    while (this.#listeners.size > 0) {
      await pause(this.#readMs);
      try {
        const reading = this.#view.read();
        if (!(await endsWithin(READ_WITHIN_MS, reading)))
          throw new Error(`No answer from the store within ${durationText(READ_WITHIN_MS)}.`);
      } catch (error) {
        const trouble = { error: errorMessage(error) };
        for (const [response] of this.#listeners) {
          this.#send(response, 'trouble', trouble);
          // The next read is sent even if nothing changed: it ends the trouble.
          this.#listeners.set(response, { status: '' });
        }
      }
    }
    this.#reading = false;
  }

  #sendPending(response: ServerResponse, { version, at }: Seen): void {
    const sent = this.#listeners.get(response);
    if (!sent || sent.version === version) return;
    sent.version = version;
    this.#send(response, 'pending', { version, at });
  }

  /** Sends the status unless it equals the last one, apart from its time. */
  #sendStatus(response: ServerResponse, status: FleetStatus): void {
    const sent = this.#listeners.get(response);
    const text = JSON.stringify({ ...status, at: 0 });
    if (!sent || sent.status === text) return;
    sent.status = text;
    this.#send(response, 'status', status);
  }

  #send<Event extends keyof LiveEvents>(
    response: ServerResponse,
    event: Event,
    data: LiveEvents[Event],
  ): void {
    if (response.writableLength > MAX_UNREAD_BYTES) response.destroy();
    else response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }
}
