import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { followNodes } from '#shared/engine/watch/follow-nodes.ts';
import type { Change, LiveNode, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { type DrivenTimers, drivenClock, driveTimers } from '#test/world/driven-timers.ts';
import { liveNode } from './live-objects.ts';
import { ScriptedResource } from './scripted-resource.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;

const node = (name: string, version: string): LiveNode => ({ ...liveNode(name), resourceVersion: version });
const upsert = (name: string, version: string): Change<LiveNode> => ({
  kind: 'upsert',
  object: node(name, version),
});
const bookmark = (resourceVersion: string): WatchEvent<LiveNode> => ({ kind: 'bookmark', resourceVersion });
const initialEnd = (resourceVersion: string): WatchEvent<LiveNode> => ({
  kind: 'bookmark',
  resourceVersion,
  initialEnd: true,
});
/** What a streamed list says of these nodes. */
const streamed = (version: string, ...names: readonly string[]): readonly WatchEvent<LiveNode>[] => [
  ...names.map((name) => upsert(name, '1')),
  initialEnd(version),
];
const page = (version: string, ...names: readonly string[]) => ({
  items: names.map((name) => node(name, version)),
  resourceVersion: version,
});
const gone = () => new ApiError('too old resource version', 410, 'Expired');
const broken = () => new ApiError('the connection was reset', 0);
const refused = (status: number, retryAfterSeconds?: number) =>
  new ApiError('refused', status, '', retryAfterSeconds);

interface Bench {
  readonly nodes: ScriptedResource<LiveNode>;
  /** What the sink was called with, in short. */
  readonly heard: string[];
  readonly failures: unknown[];
  readonly answers: string[];
  /** How often the server gave a sign of life. */
  readonly signs: () => number;
  readonly time: DrivenTimers;
  readonly ended: () => boolean;
  readonly start: () => void;
  readonly abort: () => void;
  /** Called with each change before it is noted. */
  onChange: (change: Change<LiveNode>) => void;
}

/** A follower that is not started yet, and is aborted at the end of the test. */
function bench(context: TestContext): Bench {
  const time = driveTimers(context);
  const aborting = new AbortController();
  context.after(() => aborting.abort());
  let ended = false;
  let signs = 0;
  const made: Bench = {
    nodes: new ScriptedResource<LiveNode>(),
    heard: [],
    failures: [],
    answers: [],
    signs: () => signs,
    time,
    onChange: () => undefined,
    ended: () => ended,
    abort: () => aborting.abort(),
    start: () => {
      const sink = {
        replace: (objects: readonly LiveNode[]) => {
          made.heard.push(`all: ${objects.map(({ name }) => name).join(' ')}`);
        },
        change: (change: Change<LiveNode>) => {
          made.onChange(change);
          made.heard.push(`${change.kind} ${change.object.name}`);
        },
        heard: () => {
          signs += 1;
        },
        failed: (error: unknown) => made.failures.push(error),
        answered: (request: string) => made.answers.push(request),
        rewound: () => made.heard.push('rewound'),
      };
      void followNodes(made.nodes, sink, { clock: drivenClock, signal: aborting.signal }).then(() => {
        ended = true;
      });
    },
  };
  made.nodes.streams = false;
  made.nodes.watches = [{ events: streamed('1'), end: 'quiet' }];
  return made;
}

/** From where each watch was asked for. */
const watchedFrom = ({ nodes }: Bench) =>
  nodes.watched.map(({ initial, resourceVersion }) => (initial ? 'all' : resourceVersion));

describe('a streamed list', () => {
  test('is told when its end is marked, and followed on the same watch', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [...streamed('7', 'a', 'b'), upsert('c', '8')], end: 'hang' }];
    given.start();
    await given.time.settle();
    assert.deepEqual(given.heard, ['all: a b', 'upsert c']);
    assert.deepEqual(watchedFrom(given), ['all']);
    assert.deepEqual(given.nodes.listed, []);
  });

  test('is not told before, whatever bookmarks come', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [upsert('a', '5'), bookmark('6')], end: 'hang' }];
    given.start();
    await given.time.pass(SECOND);
    assert.deepEqual(given.heard, []);
  });

  test('that ends early is thrown away, and asked for once more', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [upsert('a', '5')], end: undefined },
      { events: streamed('7', 'b'), end: 'hang' },
    ];
    given.start();
    await given.time.pass(SECOND);
    assert.deepEqual(given.heard, ['all: b']);
    assert.deepEqual(watchedFrom(given), ['all', 'all']);
    assert.match(String(given.failures[0]), /ended early/);
  });

  test('that breaks twice is asked for by pages of 50, and watched from there', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [upsert('a', '5')], end: broken() },
      { events: [upsert('a', '5')], end: undefined },
      { events: [], end: 'hang' },
    ];
    given.nodes.lists = [{ ...page('7', 'a', 'b'), continue: 'more' }, page('7', 'c')];
    given.start();
    await given.time.pass(2 * SECOND);
    assert.deepEqual(given.heard, ['all: a b c']);
    assert.deepEqual(
      given.nodes.listed.map((options) => [options.limit, options.continue]),
      [
        [50, undefined],
        [50, 'more'],
      ],
    );
    assert.deepEqual(watchedFrom(given), ['all', 'all', '7']);
    assert.equal(given.failures.length, 2);
  });

  test('that breaks now and then, and comes whole in between, is asked for streamed each time', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [upsert('a', '5')], end: broken() },
      { events: streamed('7', 'a'), end: gone() },
      { events: [upsert('a', '8')], end: broken() },
      { events: streamed('9', 'a', 'b'), end: 'hang' },
    ];
    given.start();
    await given.time.pass(5 * SECOND);
    assert.deepEqual(given.heard, ['all: a', 'all: a b']);
    assert.deepEqual(given.nodes.listed, []);
  });

  for (const status of [400, 422]) {
    test(`that the server does not know (${status}) is asked for by pages at once`, async (context) => {
      const given = bench(context);
      given.nodes.watches = [
        { events: [], end: refused(status) },
        { events: [], end: 'hang' },
      ];
      given.nodes.lists = [page('7', 'a')];
      given.start();
      await given.time.settle();
      assert.deepEqual(given.heard, ['all: a']);
      assert.deepEqual(watchedFrom(given), ['all', '7']);
      assert.deepEqual(given.failures, []);
    });
  }

  test('is asked for streamed again after one by pages: the server may be another one by then', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [], end: refused(422) },
      { events: [], end: gone() },
      { events: streamed('9', 'b'), end: 'hang' },
    ];
    given.nodes.lists = [page('7', 'a')];
    given.start();
    await given.time.pass(5 * SECOND);
    assert.deepEqual(given.heard, ['all: a', 'all: b']);
    assert.deepEqual(watchedFrom(given), ['all', '7', 'all']);
  });

  test('that is refused with a Retry-After of a day is asked for again after ten minutes', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [], end: refused(429, 24 * 3600) },
      { events: streamed('7', 'a'), end: 'hang' },
    ];
    given.start();
    await given.time.pass(10 * MINUTE - SECOND);
    assert.equal(given.nodes.watched.length, 1);
    await given.time.pass(2 * SECOND);
    assert.deepEqual(given.heard, ['all: a']);
  });

  test('that is refused with Retry-After is asked for again after that, streamed', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [], end: refused(429, 30) },
      { events: [], end: refused(503, 20) },
      { events: streamed('7', 'a'), end: 'hang' },
    ];
    given.start();
    await given.time.pass(29 * SECOND);
    assert.equal(given.nodes.watched.length, 1);
    await given.time.pass(20 * SECOND);
    assert.equal(given.nodes.watched.length, 2);
    await given.time.pass(2 * SECOND);
    assert.deepEqual(given.heard, ['all: a']);
    assert.deepEqual(given.nodes.listed, []);
    assert.equal(given.failures.length, 2);
  });
});

describe('a list by pages', () => {
  const paged = (context: TestContext): Bench => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [], end: refused(422) },
      { events: [], end: 'hang' },
    ];
    return given;
  };
  const more = (token: string, ...names: readonly string[]) => ({ ...page('7', ...names), continue: token });

  for (const status of [429, 500, 503]) {
    test(`asks for one page again that is refused (${status}), after Retry-After`, async (context) => {
      const given = paged(context);
      given.nodes.lists = [
        more('2', 'a'),
        refused(status, 5),
        refused(status, 5),
        more('3', 'b'),
        page('7', 'c'),
      ];
      given.start();
      await given.time.pass(9 * SECOND);
      assert.deepEqual(given.heard, []);
      await given.time.pass(2 * SECOND);
      assert.deepEqual(given.heard, ['all: a b c']);
      assert.deepEqual(
        given.nodes.listed.map((options) => options.continue),
        [undefined, '2', '2', '2', '3'],
      );
      assert.equal(given.failures.length, 2);
    });
  }

  test('comes to its end where one page in two is refused', async (context) => {
    const given = paged(context);
    const pages = Array.from({ length: 30 }, (_, index) => more(`${index}`, `n${index}`));
    given.nodes.lists = [...pages.flatMap((each) => [refused(429, 1), each]), page('7', 'last')];
    given.start();
    await given.time.pass(MINUTE);
    assert.equal(given.heard.length, 1);
    assert.equal(given.nodes.listed.length, 61);
  });

  test('begins anew when its pages expire on the way', async (context) => {
    const given = paged(context);
    given.nodes.watches = [{ events: [], end: refused(422) }];
    given.nodes.lists = [more('2', 'a'), gone(), page('9', 'b')];
    given.start();
    await given.time.pass(SECOND);
    assert.deepEqual(given.heard, ['all: b']);
    assert.equal(given.nodes.listed[2]?.continue, undefined);
  });

  test('takes a page of any length', async (context) => {
    const given = paged(context);
    given.nodes.lists = [
      { items: Array.from({ length: 200_000 }, () => node('a', '1')), resourceVersion: '1' },
    ];
    given.start();
    await given.time.settle();
    assert.equal(given.heard.length, 1);
  });
});

describe('a server that fails', () => {
  test('is tried again after a growing while, ten seconds at most', async (context) => {
    const given = bench(context);
    given.nodes.lists = [broken()];
    given.nodes.watches = [{ events: [], end: broken() }];
    given.start();
    await given.time.pass(2 * MINUTE);
    const tries = () => given.nodes.listed.length + given.nodes.watched.length;
    const inTwoMinutes = tries();
    assert.ok(inTwoMinutes >= 12 && inTwoMinutes <= 32, `${inTwoMinutes} tries`);
    assert.equal(given.failures.length, inTwoMinutes);
    await given.time.pass(5 * MINUTE);
    const later = tries() - inTwoMinutes;
    assert.ok(later >= 30 && later <= 61, `${later} tries`);
    assert.deepEqual(given.heard, []);
    assert.equal(given.signs(), 0);
  });

  test('for minutes is not asked for a new list: the watch goes on where it was', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [...streamed('1'), upsert('a', '5')], end: broken() },
      ...Array.from({ length: 20 }, () => ({ events: [], end: refused(503) })),
      { events: [upsert('b', '6')], end: 'quiet' },
    ];
    given.start();
    await given.time.pass(5 * MINUTE);
    assert.deepEqual(given.heard, ['all: ', 'upsert a', 'upsert b']);
    assert.deepEqual(new Set(watchedFrom(given).slice(1)), new Set(['5']));
    assert.deepEqual(given.nodes.listed, []);
    assert.equal(given.failures.length, 21);
  });
});

describe('a watch', () => {
  test('hands over what happens, in order, and keeps bookmarks to itself', async (context) => {
    const given = bench(context);
    const removed: Change<LiveNode> = { kind: 'delete', object: node('a', '4') };
    given.nodes.watches = [
      { events: [...streamed('1'), upsert('a', '2'), bookmark('3'), removed], end: 'hang' },
    ];
    given.start();
    await given.time.settle();
    assert.deepEqual(given.heard, ['all: ', 'upsert a', 'delete a']);
  });

  test('tells of each sign of life', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [...streamed('1', 'a'), bookmark('3')], end: 'hang' }];
    given.start();
    await given.time.settle();
    assert.equal(given.signs(), 3);
  });

  test('that the server ends is resumed after the last version heard, without a pause or a list', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [...streamed('1'), upsert('a', '5')], end: undefined },
      { events: [bookmark('8')], end: undefined },
      { events: [], end: 'hang' },
    ];
    given.start();
    await given.time.settle();
    assert.deepEqual(watchedFrom(given), ['all', '5', '8']);
    assert.deepEqual(given.failures, []);
  });

  test('is asked for five to ten minutes, at random', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: streamed('1'), end: undefined },
      { events: [bookmark('2')], end: undefined, afterMs: 100 },
    ];
    given.start();
    await given.time.pass(5 * SECOND);
    const seconds = given.nodes.watched.map(({ timeoutSeconds }) => timeoutSeconds);
    assert.ok(seconds.every((each) => Number.isInteger(each) && each >= 300 && each <= 600));
    assert.ok(new Set(seconds).size > 10);
  });

  test('that breaks now and then, with events in between, is always resumed', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: streamed('1'), end: undefined },
      { events: [upsert('a', '5')], end: broken(), afterMs: 200 },
    ];
    given.start();
    await given.time.pass(10 * SECOND);
    assert.equal(watchedFrom(given).filter((from) => from === 'all').length, 1);
    assert.ok(given.nodes.watched.length > 10);
  });

  test('whose version is too old is followed by a new list', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: streamed('1', 'a'), end: undefined },
      { events: [], end: gone() },
      { events: streamed('9', 'b'), end: 'hang' },
    ];
    given.start();
    await given.time.pass(SECOND);
    assert.deepEqual(given.heard, ['all: a', 'all: b']);
    assert.deepEqual(watchedFrom(given), ['all', '1', 'all']);
    assert.deepEqual(given.failures, []);
  });

  test('whose version is always too old does not make a hot loop of lists', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [], end: gone() }];
    given.start();
    await given.time.pass(MINUTE);
    const asked = given.nodes.listed.length + given.nodes.watched.length;
    assert.ok(asked < 30, `${asked} requests`);
  });

  test('that the server always ends at once does not make a hot loop of watches', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: streamed('1'), end: undefined },
      { events: [], end: undefined },
    ];
    given.start();
    await given.time.pass(MINUTE);
    // Six while the pauses grow to 10 s, and one for each of those, jittered by half.
    assert.ok(given.nodes.watched.length < 6 + 12, `${given.nodes.watched.length} watches`);
    assert.match(String(given.failures[0]), /ended the watch at once/);
  });

  test('that was quiet until the server ended it is nothing special', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: streamed('1'), end: undefined },
      { events: [], end: undefined, afterMs: 2 * SECOND },
      { events: [], end: 'hang' },
    ];
    given.start();
    await given.time.pass(3 * SECOND);
    assert.deepEqual(given.failures, []);
    assert.deepEqual(watchedFrom(given), ['all', '1', '1']);
  });
});

describe('a history that is another one than before', () => {
  test('shows by an older event: all is listed anew, and said to be so', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [...streamed('100', 'a'), upsert('b', '99')], end: 'hang' },
      { events: streamed('99', 'b'), end: 'hang' },
    ];
    given.start();
    await given.time.pass(SECOND);
    assert.deepEqual(given.heard, ['all: a', 'rewound', 'all: b']);
    assert.match(String(given.failures[0]), /older version/);
  });

  test('shows by an older bookmark', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [...streamed('100', 'a'), bookmark('99')], end: 'hang' },
      { events: streamed('99', 'b'), end: 'hang' },
    ];
    given.start();
    await given.time.pass(SECOND);
    assert.deepEqual(given.heard, ['all: a', 'rewound', 'all: b']);
  });

  test('shows by silence, and an older version than the watch waits for', async (context) => {
    const given = bench(context);
    given.nodes.lists = [page('99')];
    given.nodes.watches = [
      { events: streamed('100', 'a'), end: broken() },
      { events: [], end: 'hang' },
      { events: streamed('101', 'b'), end: 'quiet' },
    ];
    given.start();
    await given.time.pass(155 * SECOND);
    assert.deepEqual(given.heard, ['all: a', 'rewound', 'all: b']);
    assert.deepEqual(watchedFrom(given), ['all', '100', 'all']);
  });

  test('is not assumed where the server is merely silent', async (context) => {
    const given = bench(context);
    given.nodes.lists = [page('100')];
    given.nodes.watches = [
      { events: streamed('100', 'a'), end: 'hang' },
      { events: [], end: 'quiet' },
    ];
    given.start();
    await given.time.pass(155 * SECOND);
    assert.deepEqual(given.heard, ['all: a']);
    assert.deepEqual(watchedFrom(given), ['all', '100']);
  });
});

describe('a server that falls silent', () => {
  test('is given up after 150 s without a bookmark, and asked again', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: streamed('1'), end: 'hang' },
      { events: [], end: 'hang' },
    ];
    given.start();
    await given.time.pass(149 * SECOND);
    assert.equal(given.nodes.watched.length, 1);
    await given.time.pass(2 * SECOND);
    assert.match(String(given.failures[0]), /silent for 150 s/);
    assert.equal(given.nodes.watched.length, 2);
  });

  test('is not silent while bookmarks come', async (context) => {
    const given = bench(context);
    given.start();
    await given.time.pass(10 * MINUTE);
    assert.deepEqual(given.failures, []);
    assert.equal(given.nodes.watched.length, 1);
  });
});

describe('aborted', () => {
  test('in the middle of a list by pages, it ends at once', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [], end: refused(422) }];
    given.nodes.lists = ['hang'];
    given.start();
    await given.time.settle();
    given.abort();
    await given.time.settle();
    assert.equal(given.ended(), true);
    assert.deepEqual(given.failures, []);
  });

  test('in the middle of a streamed list, it ends at once', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [upsert('a', '1')], end: 'hang' }];
    given.start();
    await given.time.settle();
    given.abort();
    await given.time.settle();
    assert.equal(given.ended(), true);
    assert.deepEqual([given.failures, given.heard], [[], []]);
  });

  test('in the middle of a watch, it ends at once', async (context) => {
    const given = bench(context);
    given.start();
    await given.time.settle();
    given.abort();
    await given.time.settle();
    assert.equal(given.ended(), true);
    assert.deepEqual(given.failures, []);
  });

  test('while it waits to try again, it ends at once', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [], end: refused(503) }];
    given.start();
    await given.time.pass(MINUTE);
    given.abort();
    await given.time.settle();
    assert.equal(given.ended(), true);
  });
});

test('a change that the sink could not take is heard again', async (context) => {
  const given = bench(context);
  given.nodes.watches = [
    { events: [...streamed('1'), upsert('a', '5')], end: 'hang' },
    { events: [upsert('a', '5'), upsert('b', '6')], end: 'hang' },
  ];
  let failing = true;
  given.onChange = () => {
    if (failing) {
      failing = false;
      throw new Error('not now');
    }
  };
  given.start();
  await given.time.pass(SECOND);
  assert.deepEqual(watchedFrom(given), ['all', '1']);
  assert.deepEqual(given.heard, ['all: ', 'upsert a', 'upsert b']);
  assert.equal(given.failures.length, 1);
});

test('a change that the sink can never take is tried at a growing distance, not in a hot loop', async (context) => {
  const given = bench(context);
  given.nodes.watches = [
    { events: [...streamed('1'), upsert('a', '5')], end: 'hang' },
    { events: [upsert('a', '5')], end: 'hang' },
  ];
  given.onChange = () => {
    throw new Error('never');
  };
  given.start();
  await given.time.pass(MINUTE);
  assert.ok(given.failures.length > 2 && given.failures.length < 15, `${given.failures.length} failures`);
});

describe('nodes without end, as no cluster has them', () => {
  const large = (name: string, version: string): LiveNode => ({
    ...node(name, version),
    taints: [{ key: 'a', value: 'x'.repeat(1024 * 1024), effect: 'NoExecute' }],
  });
  const upserts = Array.from({ length: 100 }, (_, index) => ({
    kind: 'upsert' as const,
    object: large(`n${index}`, `${index + 2}`),
  }));
  const said = ({ failures }: Bench) => failures.map((error) => (error as Error).message);
  const TOO_MANY = /^Its nodes take more than 64 MiB/;

  test('in a streamed list fill no memory: none of them is kept', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: upserts, end: 'hang' }];
    given.start();
    await given.time.settle();
    assert.deepEqual(given.heard, []);
    assert.match(said(given)[0] ?? '', TOO_MANY);
  });

  test('under one name fill none either', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: upserts.map(() => upserts[0] as Change<LiveNode>), end: 'hang' }];
    given.start();
    await given.time.settle();
    assert.match(said(given)[0] ?? '', TOO_MANY);
  });

  test('in pages fill none either', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [], end: refused(400) }];
    given.nodes.lists = [{ items: [large('n', '1')], resourceVersion: '1', continue: 'more' }];
    given.start();
    await given.time.settle();
    assert.match(said(given)[0] ?? '', TOO_MANY);
    assert.ok(given.nodes.listed.length < 100);
  });

  test('in a watch fill none either, and those that are known stay', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [...streamed('1', 'a'), ...upserts], end: 'hang' }];
    given.start();
    await given.time.settle();
    assert.equal(given.heard[0], 'all: a');
    assert.ok(given.heard.length < 65, `${given.heard.length}`);
    assert.match(said(given)[0] ?? '', TOO_MANY);
  });

  test('are none where few are there at a time, however many come and go', async (context) => {
    const given = bench(context);
    const comings = upserts.flatMap((upserted) => [upserted, { ...upserted, kind: 'delete' as const }]);
    given.nodes.watches = [{ events: [...streamed('1', 'a'), ...comings], end: 'hang' }];
    given.start();
    await given.time.settle();
    assert.deepEqual([given.heard.length, said(given)], [201, []]);
  });

  test('are none where the same few change again and again', async (context) => {
    const given = bench(context);
    const changes = upserts.map(({ object }) => ({
      kind: 'upsert' as const,
      object: { ...object, name: upserts[0]?.object.name ?? object.name },
    }));
    given.nodes.watches = [{ events: [...streamed('1', 'a'), ...changes], end: 'hang' }];
    given.start();
    await given.time.settle();
    assert.deepEqual(said(given), []);
    assert.equal(given.heard.length, 101);
  });
});
