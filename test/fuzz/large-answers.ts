import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import { ApiError, LateCallError } from '#shared/kubernetes/http/api-error.ts';
import type { RestApi } from '#shared/kubernetes/rest-api.ts';
import { scriptedServer } from '#test/unit/kubernetes/scripted-server.ts';
import type { Kind, Outcome } from './kind.ts';
import { must, refusal } from './refusal.ts';

const NOW = Date.UTC(2026, 10, 24, 12);
const NODE = nodeName('n1');
const POD = { namespace: 'shop', name: 'web-0' };
const { signal } = new AbortController();

const META = `"metadata":{"name":"n1","namespace":"shop","uid":"u1","resourceVersion":"1","creationTimestamp":"2026-11-22T11:00:00Z"}`;

/** Pieces of few bytes each; `#` stands for a counter, so that no two are the same. */
const PIECES = [
  '{}',
  '[]',
  '1',
  '""',
  'null',
  '9223372036854775807',
  '{"a":{}}',
  '"#"',
  '[#]',
  '{"#":#}',
  '1e999',
];
const KEYS = ['"a":1', '"#":1', '"k#":{}', '"__proto__":[]', '"items":[]', '"metadata":{}', '"é#":"ж"'];
/** The places of pieces: `@` is an array of pieces, `%` are keys with values. */
const PLACES = [
  `{${META},"x":@}`,
  `{${META},"spec":{"tolerations":@,"taints":@}}`,
  `{${META},%}`,
  `{${META},"metadata":{"labels":{%},"name":"n1"}}`,
  `{${META},"items":@}`,
  `{"x":@,${META},"items":[{${META},"x":@}]}`,
  `{${META}, "items" : [ {"kind":"Pod",${META},"status":{"conditions":@}} ] }`,
  `{"kind":"Status","code":403,"message":"no","details":{"causes":@}}`,
  `{"type":"ADDED","object":{${META},"x":@}}`,
  '@',
] as const;

const CALLS = {
  getNode: (api: RestApi) => api.getNode(NODE),
  getPod: (api: RestApi) => api.getPod(POD),
  mark: (api: RestApi) => api.markDisrupted(POD, podUid('u1'), NOW),
  delete: (api: RestApi) => api.deletePod(POD, { uid: podUid('u1') }),
  evict: (api: RestApi) => api.evictPod(POD, { uid: podUid('u1') }),
  review: (api: RestApi) => api.allowed({ verb: 'delete', resource: 'pods' } as never),
  takeover: (api: RestApi) => api.getTakeover(),
  nodes: (api: RestApi) => api.nodes.list({ limit: 50, signal }),
  pods: (api: RestApi) => api.pods.list({ onNode: NODE, signal }),
  watch: (api: RestApi) =>
    Array.fromAsync(api.pods.watch({ resourceVersion: '1', timeoutSeconds: 60, signal })),
} as const;

interface LargeAnswer {
  readonly call: keyof typeof CALLS;
  readonly status: number;
  readonly place: (typeof PLACES)[number];
  readonly piece: string;
  readonly key: string;
  readonly count: number;
  /** Arrays or objects around each array. */
  readonly depth: number;
  readonly end: 'whole' | 'gzip' | 'endless-string';
}

const inputs: fc.Arbitrary<LargeAnswer> = fc.record({
  call: fc.constantFrom(...(Object.keys(CALLS) as (keyof typeof CALLS)[])),
  status: fc.constantFrom(200, 200, 200, 200, 403, 429),
  place: fc.constantFrom(...PLACES),
  piece: fc.constantFrom(...PIECES),
  key: fc.constantFrom(...KEYS),
  // Counts below the limits of the checks, and beyond the size that is read.
  count: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 20_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 1_600_000, max: 2_000_000 }) },
  ),
  depth: fc.constantFrom(0, 0, 0, 1, 100, 20_000),
  end: fc.constantFrom('whole', 'whole', 'gzip', 'endless-string'),
});

/**
 * Answers of API servers with many values in few bytes, with deep nesting, or without an end. Each is read, or rejected with an
 * `ApiError`. A call to a healthy API server at the same time is answered.
 */
export const largeAnswers: Kind<LargeAnswer> = {
  name: 'large-answers',
  // The texts have up to 64 MB, and the server that sends them runs in the same thread.
  mostYardsticks: 80,
  open: async () => {
    let next: LargeAnswer | undefined;
    let now = NOW;
    const clock = { now: () => now };
    const closing: (() => void)[] = [];
    const ending = { after: (close: () => void) => void closing.push(close) };
    const hostile = await scriptedServer(ending, (response) => next && respond(response, next), { clock });
    const healthy = await scriptedServer(ending, (response) => response.end('{"metadata":{"name":"n1"}}'), {
      clock,
    });
    return {
      inputs,
      feed: async (given) => {
        next = given;
        // The API client calls an unresponsive server again after this time.
        now += 3_700_000;
        hostile.requests.length = healthy.requests.length = 0;
        const [outcome, node] = await Promise.all([request(hostile.api, given), healthy.api.getNode(NODE)]);
        must(node?.name === NODE, 'the healthy API server had no answer');
        return outcome;
      },
      close: () => {
        for (const close of closing) close();
      },
    };
  },
};

function respond(response: ServerResponse, given: LargeAnswer): void {
  const text = Buffer.from(`${textOf(given)}\n`);
  if (given.end === 'gzip') {
    response.writeHead(given.status, { 'content-encoding': 'gzip' }).end(gzipSync(text, { level: 1 }));
    return;
  }
  response.writeHead(given.status);
  if (given.end === 'whole') {
    response.end(text);
    return;
  }
  const piece = 'x'.repeat(1024 * 1024);
  const more = (): void => {
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', more);
  response.write(text.subarray(0, -3));
  response.write('"');
  more();
}

function textOf({ place, piece, key, count, depth }: LargeAnswer): string {
  const array = `${'['.repeat(depth)}[${repeated(piece, count)}]${']'.repeat(depth)}`;
  return place.replaceAll('@', () => array).replaceAll('%', () => repeated(key, count) || '"a":1');
}

function repeated(piece: string, count: number): string {
  if (count === 0) return '';
  // Texts of different pieces have ten times the bytes, so their count is limited.
  if (!piece.includes('#')) return `${`${piece},`.repeat(count - 1)}${piece}`;
  return Array.from({ length: Math.min(count, 20_000) }, (_, n) => piece.replaceAll('#', String(n))).join();
}

async function request(api: RestApi, { call }: LargeAnswer): Promise<Outcome> {
  try {
    await CALLS[call](api);
    return 'accepted';
  } catch (error) {
    return refusal(error, [ApiError, LateCallError]);
  }
}
