import type http from 'node:http';
import { constants } from 'node:http2';
import { Transform } from 'node:stream';
import { setTimeout as passes } from 'node:timers/promises';
import { type Passage, passOn } from '#test/cluster/rig/wiretap.ts';
import type { SeededRandom } from '#test/simulation/seeded-random.ts';
import type { Fault, Sky } from './plan.ts';

type Weather = Extract<Fault, { kind: 'weather' }>;

const RETRY_AFTER_SECONDS = [1, 3] as const;
const SLOW_CHUNK_BYTES = 512;
const SLOW_PAUSE_MS = 20;
/** A slow response continues at full speed after this many bytes: the relay's lists are megabytes. */
const SLOW_BYTES = 32 * 1024;

/** Disturbs the requests between the service and an API server while a weather lasts. */
export class Weathered {
  /** The number of disturbed requests, by sky. */
  readonly hits = new Map<Sky, number>();
  readonly #random: SeededRandom;
  /** The responses of open watches. */
  readonly #watches = new Set<Passage['response']>();
  #weather: { readonly sky: Sky; readonly share: number; readonly over: Promise<void> } | undefined;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  /** Starts a weather; resolves when it is over. */
  async last({ sky, share, durationMs }: Weather): Promise<void> {
    const over = passes(durationMs);
    this.#weather = { sky, share, over };
    // Open watches are held back, too.
    const held = sky === 'deaf' ? [...this.#watches].filter(() => this.#random.chance(share)) : [];
    for (const response of held) {
      this.#hit(sky);
      response.stream?.cork();
    }
    await over;
    this.#weather = undefined;
    for (const response of held) response.stream?.uncork();
  }

  /** Implements {@link Wiretap.carry}. */
  readonly carry = async ({ request, response, forward }: Passage): Promise<void> => {
    const isWatch = request.path.includes('watch=1');
    if (isWatch) {
      this.#watches.add(response);
      response.once('close', () => this.#watches.delete(response));
    }
    const weather = this.#weather;
    const isHit = weather && this.#random.chance(weather.share) && (isWatch || weather.sky !== 'deaf');
    if (!isHit) return passOn(await forward(), response);
    const { sky, over } = weather;
    this.#hit(sky);
    const reset = () => response.stream?.close(constants.NGHTTP2_INTERNAL_ERROR);
    switch (sky) {
      case 'throttled':
        return refuse(response, 429, 'TooManyRequests', {
          'retry-after': String(this.#random.between(...RETRY_AFTER_SECONDS)),
        });
      case 'failing':
        // Half of the requests that are reported as failed were performed.
        if (!isWatch && this.#random.chance(0.5)) await toItsEnd(await forward());
        return refuse(response, 500, 'InternalError');
      case 'resetting':
        if (this.#random.chance(0.3)) return reset();
        if (isWatch || this.#random.chance(0.5)) return passOn(await forward(), response, cutShort(reset));
        await toItsEnd(await forward());
        return reset();
      case 'deaf':
      case 'silent':
        await over;
        if (response.closed) return;
        return this.#random.chance(0.5) ? reset() : passOn(await forward(), response);
      case 'slow':
        return passOn(await forward(), response, slowly());
      default:
        return sky satisfies never;
    }
  };

  #hit(sky: Sky): void {
    this.hits.set(sky, (this.hits.get(sky) ?? 0) + 1);
  }
}

/** Responds with a Status, as an API server rejects requests. */
function refuse(
  response: Passage['response'],
  code: number,
  reason: string,
  headers: http.OutgoingHttpHeaders = {},
): void {
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    message: 'bad weather',
    reason,
    code,
  };
  response.writeHead(code, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(status));
}

/** Reads the API server's response to its end, and discards it. */
async function toItsEnd(answer: http.IncomingMessage): Promise<void> {
  for await (const _ of answer);
}

/** Returns a transform that forwards the first bytes of a response, and then resets the connection. */
function cutShort(reset: () => void): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      this.push(chunk.subarray(0, Math.ceil(chunk.length / 2)));
      reset();
      done();
    },
  });
}

/** Returns a transform that forwards a response slowly. */
function slowly(): Transform {
  let slow = SLOW_BYTES;
  return new Transform({
    async transform(chunk: Buffer, _encoding, done) {
      let from = 0;
      for (; from < chunk.length && slow > 0; from += SLOW_CHUNK_BYTES, slow -= SLOW_CHUNK_BYTES) {
        this.push(chunk.subarray(from, from + SLOW_CHUNK_BYTES));
        await passes(SLOW_PAUSE_MS);
      }
      this.push(chunk.subarray(from));
      done();
    },
  });
}
