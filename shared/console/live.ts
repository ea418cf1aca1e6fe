import type { ServerResponse } from 'node:http';
import { type FleetStatus, statusOf } from '#shared/operations/look/status.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { pause } from '#shared/time/pause.ts';
import type { LiveEvents } from './api.ts';
import type { FleetView } from './fleet-view.ts';

/** How often it is looked what has changed, while somebody listens. */
const LOOK_MS = 1_000;
/** A comment this often shows both ends that the connection stands. */
const HEARTBEAT_MS = 15_000;
/** What a listener has not taken when it is behind by so much is lost on it: it is to come again. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;
const MAX_LISTENERS = 32;

export interface LiveDeps {
  readonly view: FleetView;
  /** Absent: every second. */
  readonly lookMs?: number;
}

/** Tells listeners what changes, as server-sent events: one reader for all of them, and none while nobody listens. */
export class Live {
  readonly #view: FleetView;
  readonly #lookMs: number;
  readonly #listeners = new Map<ServerResponse, { status: string }>();
  #looking = false;

  constructor({ view, lookMs = LOOK_MS }: LiveDeps) {
    this.#view = view;
    this.#lookMs = lookMs;
    view.listen((seen, delta) => {
      if (this.#listeners.size === 0) return;
      const status = statusOf(seen);
      for (const [response] of this.#listeners) {
        if (delta.version !== delta.from) this.#tell(response, 'pending', delta);
        this.#tellStatus(response, status);
      }
    });
  }

  /** Tells it what there is and what changes, until it goes or `ended` aborts. `false`: too many listen already. */
  async join(response: ServerResponse, ended: AbortSignal): Promise<boolean> {
    if (this.#listeners.size >= MAX_LISTENERS) return false;
    const seen = await this.#view.look();
    // Meanwhile others may have come, and this one gone.
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
    const { version, at } = seen;
    this.#tell(response, 'pending', { from: version, version, at, put: [], gone: [] });
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

  /** Unless it is what was told last, but for its moment. */
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
