import type { ServerResponse } from 'node:http';
import { type FleetStatus, statusOf } from '#shared/operations/look/status.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { pause } from '#shared/time/pause.ts';
import type { LiveEvents } from './api.ts';
import type { FleetView, Seen } from './fleet-view.ts';

/** Interval between reads while a listener is connected. */
const LOOK_MS = 1_000;
/** Interval of a comment by which both ends detect a lost connection. */
const HEARTBEAT_MS = 15_000;
/** Backlog at which a slow listener is disconnected. It must connect again. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;
export const MAX_LISTENERS = 32;

export interface LiveDeps {
  readonly view: FleetView;
  /** Absent: every second. */
  readonly lookMs?: number;
}

/** Sends changes as server-sent events. All listeners share one reader, which stops when none is connected. */
export class Live {
  readonly #view: FleetView;
  readonly #lookMs: number;
  readonly #listeners = new Map<ServerResponse, { status: string; version?: number }>();
  #looking = false;

  constructor({ view, lookMs = LOOK_MS }: LiveDeps) {
    this.#view = view;
    this.#lookMs = lookMs;
    view.listen((seen) => {
      if (this.#listeners.size === 0) return;
      const status = statusOf(seen);
      for (const [response] of this.#listeners) {
        this.#tellPending(response, seen);
        this.#tellStatus(response, status);
      }
    });
  }

  /** Sends state and changes until the response closes or `ended` aborts. `false`: too many listeners. */
  async join(response: ServerResponse, ended: AbortSignal): Promise<boolean> {
    if (this.#listeners.size >= MAX_LISTENERS) return false;
    const seen = await this.#view.look();
    // Meanwhile, others may have joined, and this listener may have disconnected.
    if (this.#listeners.size >= MAX_LISTENERS) return false;
    if (response.destroyed || ended.aborted) {
      response.destroy();
      return true;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`retry: ${LOOK_MS}\n\n`);
    this.#listeners.set(response, { status: '' });
    const heartbeat = setInterval(() => response.write(':\n\n'), HEARTBEAT_MS);
    const leave = () => {
      clearInterval(heartbeat);
      ended.removeEventListener('abort', end);
      this.#listeners.delete(response);
    };
    const end = () => {
      this.#tell(response, 'end', {
        reason: 'The session ended. To open the console again, run taintward console.',
      });
      leave();
      response.end();
    };
    ended.addEventListener('abort', end);
    response.once('close', leave);
    this.#tellStatus(response, statusOf(seen));
    this.#tellPending(response, seen);
    void this.#look();
    return true;
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    while (this.#listeners.size > 0) {
      await pause(this.#lookMs);
      try {
        await this.#view.look();
      } catch (error) {
        const trouble = { error: errorMessage(error) };
        for (const [response] of this.#listeners) this.#tell(response, 'trouble', trouble);
      }
    }
    this.#looking = false;
  }

  #tellPending(response: ServerResponse, { version, at }: Seen): void {
    const told = this.#listeners.get(response);
    if (!told || told.version === version) return;
    told.version = version;
    this.#tell(response, 'pending', { version, at });
  }

  /** Sends the status unless it equals the last one, apart from its time. */
  #tellStatus(response: ServerResponse, status: FleetStatus): void {
    const told = this.#listeners.get(response);
    const said = JSON.stringify({ ...status, at: 0 });
    if (!told || told.status === said) return;
    told.status = said;
    this.#tell(response, 'status', status);
  }

  #tell<Event extends keyof LiveEvents>(
    response: ServerResponse,
    event: Event,
    data: LiveEvents[Event],
  ): void {
    if (response.writableLength > MAX_UNREAD_BYTES) response.destroy();
    else response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  }
}
