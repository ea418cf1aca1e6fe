import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { nodeName } from '#shared/eviction/identity.ts';
import { wholeBody } from '#shared/kubernetes/http/answer-body.ts';
import {
  ANSWER_BYTES,
  ANSWER_STRUCTURE,
  AnswerLimitError,
  UNDER_WAY_BYTES,
  UnderWay,
} from '#shared/kubernetes/http/answer-limits.ts';
import type { RestApi } from '#shared/kubernetes/rest-api.ts';
import { NODE, node, POD, signal, UID, unanswered } from '../builders.ts';
import { type Answer, json, scriptedServer } from '../scripted-server.ts';

const EVENT = { pod: POD, key: 'k', type: 'Normal', reason: 'TaintManagerEviction', message: 'm' } as never;
const FEW = [1, 2, 3, 4].map((n) => ({ namespace: 'shop', name: `web-${n}` }));

type Call = (api: RestApi) => unknown;

/** Each call, by the kind of its answer. */
const CALLS: Readonly<Record<'short' | 'object' | 'list', Readonly<Record<string, Call>>>> = {
  short: {
    'an access review': (api) => api.allowed({ verb: 'delete', resource: 'pods' } as never),
    'an eviction': (api) => api.evictPod(POD, { uid: UID }),
    'an Event': (api) => api.createEvent(EVENT, 0),
  },
  object: {
    'a node': (api) => api.getNode(NODE),
    'a pod': (api) => api.getPod(POD),
    'a mark': (api) => api.markDisrupted(POD, UID, 0),
    'a delete': (api) => api.deletePod(POD, { uid: UID }),
    'the takeover': (api) => api.getTakeover(),
    'a watch': (api) => Array.fromAsync(api.pods.watch({ resourceVersion: '1', timeoutSeconds: 60, signal })),
  },
  list: {
    'a list of nodes': (api) => api.nodes.list({ signal }),
    'a list of pods': (api) => api.pods.list({ signal }),
  },
};

const podsOnNode = (api: RestApi) => api.podsOnNode(NODE, FEW);

const VERSION = json({ major: '1', minor: '36' });
const answering = (t: TestContext, answer: Answer) =>
  scriptedServer(t, (response, request) =>
    (request.url === '/version' ? VERSION : answer)(response, request),
  );

describe('an answer that exceeds the size limit of its kind', () => {
  for (const [kind, calls] of Object.entries(CALLS)) {
    const limit = ANSWER_BYTES[kind as keyof typeof CALLS];
    for (const [what, call] of Object.entries(calls)) {
      test(`fails the call in a sentence that names it: ${what}`, async (t) => {
        const { api, host } = await scriptedServer(t, json(`{"a":"${'x'.repeat(limit)}"}`));
        const text = limit < 1024 * 1024 ? `${limit / 1024} KiB` : `${limit / 1024 / 1024} MiB`;
        const message = await unanswered(call(api));
        assert.match(message, /^Cannot (get|list|watch|create|patch|delete|check) \S/);
        assert.ok(message.includes(` at ${host}: it`), message);
        assert.ok(message.includes(` more than ${text}`), message);
      });
    }
  }

  test('fails a call with an error status', async (t) => {
    const { api } = await scriptedServer(t, json(`{"a":"${'x'.repeat(ANSWER_BYTES.refusal)}"}`, 403));
    assert.match(await unanswered(api.getNode(NODE)), /its answer has more than 256 KiB\.$/);
  });

  const gzipped = async (t: TestContext, object: object, statedBytes: number) => {
    const zipped = gzipSync(JSON.stringify(object));
    zipped.writeUInt32LE(statedBytes, zipped.length - 4);
    const { api } = await scriptedServer(t, (response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(zipped);
    });
    return unanswered(api.getNode(NODE));
  };

  test('fails the call by the size in its gzip trailer, before decompression', async (t) => {
    const message = await gzipped(t, { metadata: { name: 'n1' } }, ANSWER_BYTES.object + 1);
    assert.match(message, /its answer has more than 10 MiB\.$/);
  });

  test('fails the call if it exceeds the size in its gzip trailer', async (t) => {
    const message = await gzipped(t, { metadata: { name: 'n1', x: ' '.repeat(10_000) } }, 100);
    assert.match(message, /decompressed, is larger than its gzip trailer says\.$/);
  });
});

test('reads, marks, and deletes a pod of the largest size that etcd accepts', async (t) => {
  // The API server writes each `<` of 1.4 MB of environment variables as six characters.
  const pod = `{"metadata":{"name":"web-0","namespace":"shop","uid":"7d1f","creationTimestamp":"2026-11-21T11:00:00Z"},"spec":{"x":"${'\\u003c'.repeat(1_400_000)}"}}`;
  const { api } = await scriptedServer(t, json(pod));
  assert.equal((await api.getPod(POD))?.uid, UID);
  assert.equal((await api.markDisrupted(POD, UID, 0)).uid, UID);
  await api.deletePod(POD, { uid: UID });
});

const many = (piece: string): string => `${piece},`.repeat(ANSWER_STRUCTURE.characters / 2);
/** Texts of few bytes, each with more values than an answer may contain. */
const HELD: Readonly<Record<string, string>> = {
  objects: `[${many('{}')}{}]`,
  arrays: `[${many('[]')}[]]`,
  numbers: `[${many('1')}${many('1')}1]`,
  strings: `[${many('""')}${many('""')}""]`,
  'objects in one another': '{"a":'.repeat(ANSWER_STRUCTURE.characters),
  'the same key': `{${many('"a":1')}"a":1}`,
  'keys that differ': `{${Array.from({ length: ANSWER_STRUCTURE.characters / 2 + 1 }, (_, n) => `"${n}":1`)}}`,
};

describe('an answer of few bytes and many values', () => {
  const why = /: one object of its answer has more than 1572864 structural characters \({, \[, : and ,\)\.$/;
  const [get, list] = [CALLS.object['a node'], CALLS.list['a list of nodes']];
  /** The places of an answer that are checked, with a call that reads them. */
  const PLACES = {
    'an object': (held: string) => [`{"metadata":{"name":"n1"},"x":${held}}`, get],
    'a list': (held: string) => [`{"metadata":{"resourceVersion":"1"},"x":${held},"items":[]}`, list],
    'an item': (held: string) => [
      `{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"n1"},"x":${held}}]}`,
      list,
    ],
    'a pod of a node': (held: string) => [
      `{"metadata":{"resourceVersion":"1"}, "items" : [{"x":${held}}]}`,
      podsOnNode,
    ],
    'an event': (held: string) => [
      `{"type":"ADDED","object":{"metadata":{"name":"n1"},"x":${held}}}\n`,
      CALLS.object['a watch'],
    ],
  } satisfies Record<string, (held: string) => readonly [text: string, call: Call | undefined]>;
  // The same code checks all of them: two places have each text, and one text is in each place.
  const everywhere = Object.keys(PLACES) as (keyof typeof PLACES)[];
  for (const [what, held] of Object.entries(HELD)) {
    test(`fails the call before parsing: ${what}`, async (t) => {
      const reason = what === 'objects in one another' ? /: its answer nests / : why;
      for (const place of what === 'objects' ? everywhere : (['an object', 'an item'] as const)) {
        const [text, call] = PLACES[place](held);
        const { api } = await answering(t, json(text));
        // Different keys also need so many bytes that they exceed the size limit in one object.
        assert.match(
          await unanswered(call?.(api)),
          text.length > ANSWER_BYTES.object ? /more than 10 MiB/ : reason,
        );
      }
    });
  }

  const quarter = ANSWER_STRUCTURE.kept / 4;
  for (const [what, metadata, spec] of [
    ['tolerations', '', `"tolerations":[${'{},'.repeat(quarter)}{}]`],
    [
      'annotations',
      `,"annotations":{${Array.from({ length: quarter + 1 }, (_, key) => `"${key}":""`).join()}}`,
      '',
    ],
  ] as const) {
    test(`fails a list that would keep too many ${what} of its items`, async (t) => {
      const pod = `{"metadata":{"name":"a","namespace":"b","uid":"c","creationTimestamp":"2026-11-21T11:00:00Z"${metadata}},"spec":{${spec}}}`;
      const list = (count: number) => `{"metadata":{},"items":[${Array.from({ length: count }, () => pod)}]}`;
      const few = await answering(t, json(list(3)));
      assert.equal((await few.api.pods.list({ signal })).items.length, 3);
      const { api } = await answering(t, json(list(4)));
      const kept =
        /: the items of its list have more than 1000000 tolerations, labels, annotations, finalizers and taints\.$/;
      assert.match(await unanswered(api.pods.list({ signal })), kept);
    });
  }

  test('fails a list of too many items, however it is written', async (t) => {
    for (const item of ['{"metadata":{"name":"n1"}}', '{"kind":"Node","metadata":{"name":"n1"}}']) {
      const items = Array.from({ length: ANSWER_STRUCTURE.items + 1 }, () => item);
      const { api } = await answering(t, json(`{"metadata":{},"items":[${items}]}`));
      assert.match(await unanswered(api.nodes.list({ signal })), /: its list has more than 50000 items\.$/);
    }
  });
});

describe('a deeply nested answer', () => {
  const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  const pad = ' '.repeat(ANSWER_STRUCTURE.characters);

  test('is read down to the depth limit', async (t) => {
    const body = (depth: number) => `{"metadata":{"name":"n1"},"x":${deep(depth)}${pad}}`;
    const fine = await scriptedServer(t, json(body(ANSWER_STRUCTURE.depth - 1)));
    assert.equal((await fine.api.getNode(NODE))?.name, 'n1');
    const { api } = await scriptedServer(t, json(body(ANSWER_STRUCTURE.depth)));
    assert.match(
      await unanswered(api.getNode(NODE)),
      /: its answer nests objects and arrays more than 10000 deep\.$/,
    );
  });

  test('rejects a deep list item with a long integer as invalid JSON', async (t) => {
    const item = `{"metadata":{"name":"n1"},"n":9223372036854775807,"x":${deep(100_000)}}`;
    const { api } = await answering(t, json(`{"metadata":{},"items":[${item}]}`));
    assert.match(await unanswered(api.nodes.list({ signal })), /: its answer is not JSON/);
  });
});

describe('the answers in progress from one API server', () => {
  test('hold a limited number of bytes together, whatever their number', () => {
    const underWay = new UnderWay();
    const large = underWay.hold();
    large.take(UNDER_WAY_BYTES.free + UNDER_WAY_BYTES.cluster);
    const other = underWay.hold();
    other.take(UNDER_WAY_BYTES.free);
    assert.throws(() => other.take(1), AnswerLimitError);
    large.release();
    other.take(UNDER_WAY_BYTES.cluster);
    other.release();
    underWay.hold().take(UNDER_WAY_BYTES.free + UNDER_WAY_BYTES.cluster);
  });

  test('count their decompressed size', async () => {
    const text = Buffer.alloc(ANSWER_BYTES.object, ' ');
    const zipped = gzipSync(text);
    const underWay = new UnderWay();
    const other = underWay.hold();
    // Leaves room for the received bytes, but not for the decompressed bytes.
    other.take(UNDER_WAY_BYTES.cluster);
    const answer = { status: 200, headers: { 'content-encoding': 'gzip' }, sentAt: 0 };
    const read = () =>
      wholeBody({ ...answer, body: Readable.from([zipped]) }, ANSWER_BYTES.list, underWay.hold());
    await assert.rejects(read(), AnswerLimitError);
    other.release();
    assert.deepEqual(await read(), text);
  });

  test('count the unfinished lines of watches', async (t) => {
    const { api } = await scriptedServer(t, (response) => {
      response.write(Buffer.alloc(ANSWER_BYTES.object - 1, ' '));
    });
    const stop = new AbortController();
    const watch = async () => {
      const options = { resourceVersion: '1', timeoutSeconds: 60, signal: stop.signal };
      for await (const _ of api.nodes.watch(options));
    };
    const watches = Array.from({ length: 10 }, watch);
    assert.match(
      await unanswered(Promise.race(watches)),
      /: its answers under way have more than 64 MiB together\.$/,
    );
    stop.abort();
    await Promise.allSettled(watches);
  });

  test('fail large answers beyond the limit, not small ones or those of another cluster', async (t) => {
    const begun: ServerResponse[] = [];
    const large = Buffer.alloc(ANSWER_BYTES.object - 1, ' ');
    const { api } = await scriptedServer(t, (response, request) => {
      if (request.url.endsWith('/n1')) return node(response, request);
      begun.push(response.writeHead(200));
      response.write(large);
    });
    const healthy = await scriptedServer(t, node);
    const failed: string[] = [];
    const calls = Array.from({ length: 10 }, () =>
      api.getNode(nodeName('n2')).catch((error: Error) => failed.push(error.message)),
    );
    while (failed.length < 4) await tick();
    assert.match(
      failed[0] ?? '',
      /^Cannot get nodes n2 .*: its answers under way have more than 64 MiB together\.$/,
    );
    assert.equal((await api.getNode(NODE))?.name, 'n1');
    assert.equal((await healthy.api.getNode(NODE))?.name, 'n1');
    for (const response of begun) response.end();
    await Promise.all(calls);
    assert.equal((await api.getNode(NODE))?.name, 'n1');
  });
});
