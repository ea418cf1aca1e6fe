import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type Change, follow } from '#functions/watch-relay/follow.ts';
import type { LiveNode, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { type DrivenTimers, driveTimers } from '#test/world/driven-timers.ts';
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
const page = (version: string, ...names: readonly string[]) => ({
  items: names.map((name) => node(name, version)),
  resourceVersion: version,
});
const gone = () => new ApiError('too old resource version', 410, 'Expired');
const broken = () => new ApiError('the connection was reset', 0);

interface Bench {
  readonly nodes: ScriptedResource<LiveNode>;
  /** What the sink was called with, in short. */
  readonly heard: string[];
  readonly failures: unknown[];
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
  const made: Bench = {
    nodes: new ScriptedResource<LiveNode>(),
    heard: [],
    failures: [],
    time,
    onChange: () => undefined,
    ended: () => ended,
    abort: () => aborting.abort(),
    start: () => {
      const sink = {
        heard: () => undefined,
        replace: (objects: readonly LiveNode[]) => {
          made.heard.push(`all: ${objects.map(({ name }) => name).join(' ')}`);
        },
        change: (change: Change<LiveNode>) => {
          made.onChange(change);
          made.heard.push(`${change.kind} ${change.object.name}`);
        },
        failed: (error: unknown) => made.failures.push(error),
      };
      const options = { signal: aborting.signal, log: recordingLog(), name: 'nodes' };
      void follow(made.nodes, sink, options).then(() => {
        ended = true;
      });
    },
  };
  return made;
}

const versionsWatched = ({ nodes }: Bench) => nodes.watched.map(({ resourceVersion }) => resourceVersion);

describe('listing', () => {
  test('takes all pages before anything is said, and watches from their version', async (context) => {
    const given = bench(context);
    given.nodes.lists = [{ ...page('7', 'a', 'b'), continue: 'more' }, page('7', 'c')];
    given.start();
    await given.time.settle();
    assert.deepEqual(given.heard, ['all: a b c']);
    assert.deepEqual(
      given.nodes.listed.map((options) => [options.limit, options.continue]),
      [
        [500, undefined],
        [500, 'more'],
      ],
    );
    assert.deepEqual(versionsWatched(given), ['7']);
  });

  test('starts over when its pages expire on the way', async (context) => {
    const given = bench(context);
    given.nodes.lists = [{ ...page('7', 'a'), continue: 'more' }, gone(), page('9', 'b')];
    given.start();
    await given.time.pass(SECOND);
    assert.deepEqual(given.heard, ['all: b']);
    assert.equal(given.nodes.listed[2]?.continue, undefined);
    assert.deepEqual(given.failures, []);
  });

  test('that fails is tried again after a growing while, ten seconds at most', async (context) => {
    const given = bench(context);
    given.nodes.lists = [broken()];
    given.start();
    await given.time.pass(2 * MINUTE);
    const inTwoMinutes = given.nodes.listed.length;
    assert.ok(inTwoMinutes >= 12 && inTwoMinutes <= 32, `${inTwoMinutes} lists`);
    assert.equal(given.failures.length, inTwoMinutes);
    await given.time.pass(5 * MINUTE);
    const later = given.nodes.listed.length - inTwoMinutes;
    assert.ok(later >= 30 && later <= 61, `${later} lists`);
    assert.deepEqual(given.heard, []);
  });

  test('takes a page of any length', async (context) => {
    const given = bench(context);
    const items = Array.from({ length: 200_000 }, () => node('a', '1'));
    given.nodes.lists = [{ items, resourceVersion: '1' }];
    given.start();
    await given.time.settle();
    assert.equal(given.heard.length, 1);
  });
});

describe('a watch', () => {
  test('hands over what happens, in order, and keeps bookmarks to itself', async (context) => {
    const given = bench(context);
    const removed: Change<LiveNode> = { kind: 'delete', object: node('a', '4') };
    given.nodes.watches = [{ events: [upsert('a', '2'), bookmark('3'), removed], end: 'hang' }];
    given.start();
    await given.time.settle();
    assert.deepEqual(given.heard, ['all: ', 'upsert a', 'delete a']);
  });

  test('that the server ends is resumed after the last version heard, without a pause or a list', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [upsert('a', '5')], end: undefined },
      { events: [bookmark('8')], end: undefined },
      { events: [], end: 'hang' },
    ];
    given.start();
    await given.time.settle();
    assert.deepEqual(versionsWatched(given), ['1', '5', '8']);
    assert.equal(given.nodes.listed.length, 1);
    assert.deepEqual(given.failures, []);
  });

  test('is asked for five to ten minutes, at random', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [bookmark('2')], end: undefined, afterMs: 100 }];
    given.start();
    await given.time.pass(5 * SECOND);
    const seconds = given.nodes.watched.map(({ timeoutSeconds }) => timeoutSeconds);
    assert.ok(seconds.every((each) => Number.isInteger(each) && each >= 300 && each <= 600));
    assert.ok(new Set(seconds).size > 10);
  });

  test('that breaks once is resumed where it was', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [upsert('a', '5')], end: broken() },
      { events: [], end: 'hang' },
    ];
    given.start();
    await given.time.pass(SECOND);
    assert.deepEqual(versionsWatched(given), ['1', '5']);
    assert.equal(given.failures.length, 1);
  });

  test('that breaks twice in a row is followed by a new list', async (context) => {
    const given = bench(context);
    given.nodes.lists = [page('1', 'a'), page('9', 'b')];
    given.nodes.watches = [
      { events: [], end: broken() },
      { events: [], end: broken() },
      { events: [], end: 'hang' },
    ];
    given.start();
    await given.time.pass(2 * SECOND);
    assert.deepEqual(versionsWatched(given), ['1', '1', '9']);
    assert.deepEqual(given.heard, ['all: a', 'all: b']);
  });

  test('that breaks now and then, with events in between, is always resumed', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [upsert('a', '5')], end: broken(), afterMs: 200 }];
    given.start();
    await given.time.pass(10 * SECOND);
    assert.equal(given.nodes.listed.length, 1);
    assert.ok(given.nodes.watched.length > 10);
  });

  test('whose version is too old is followed by a new list', async (context) => {
    const given = bench(context);
    given.nodes.lists = [page('1', 'a'), page('9', 'b')];
    given.nodes.watches = [
      { events: [], end: gone() },
      { events: [], end: 'hang' },
    ];
    given.start();
    await given.time.pass(SECOND);
    assert.deepEqual(given.heard, ['all: a', 'all: b']);
    assert.deepEqual(versionsWatched(given), ['1', '9']);
    assert.deepEqual(given.failures, []);
  });

  test('whose version is always too old does not make a hot loop of lists', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [], end: gone() }];
    given.start();
    await given.time.pass(MINUTE);
    assert.ok(given.nodes.listed.length < 15, `${given.nodes.listed.length} lists`);
  });

  test('that the server always ends at once does not make a hot loop of watches', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [], end: undefined }];
    given.start();
    await given.time.pass(MINUTE);
    assert.ok(given.nodes.watched.length < 15, `${given.nodes.watched.length} watches`);
    assert.match(String(given.failures[0]), /ended the watch at once/);
  });

  test('that was quiet until the server ended it is nothing special', async (context) => {
    const given = bench(context);
    given.nodes.watches = [
      { events: [], end: undefined, afterMs: 2 * SECOND },
      { events: [], end: 'hang' },
    ];
    given.start();
    await given.time.pass(3 * SECOND);
    assert.deepEqual(given.failures, []);
    assert.deepEqual(versionsWatched(given), ['1', '1']);
  });
});

describe('a server that falls silent', () => {
  test('is given up after 150 s without a bookmark, and asked again', async (context) => {
    const given = bench(context);
    given.nodes.watches = [{ events: [], end: 'hang' }];
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
  test('in the middle of a list, it ends at once', async (context) => {
    const given = bench(context);
    given.nodes.lists = ['hang'];
    given.start();
    await given.time.settle();
    given.abort();
    await given.time.settle();
    assert.equal(given.ended(), true);
    assert.deepEqual(given.failures, []);
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
    given.nodes.lists = [broken()];
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
    { events: [upsert('a', '5')], end: 'hang' },
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
  assert.deepEqual(versionsWatched(given), ['1', '1']);
  assert.deepEqual(given.heard, ['all: ', 'upsert a', 'upsert b']);
  assert.equal(given.failures.length, 1);
});

test('a change that the sink can never take ends in new lists at a growing distance, not in a hot loop', async (context) => {
  const given = bench(context);
  given.nodes.watches = [{ events: [upsert('a', '5')], end: 'hang' }];
  given.onChange = () => {
    throw new Error('never');
  };
  given.start();
  await given.time.pass(MINUTE);
  assert.ok(given.failures.length < 15 && given.nodes.listed.length > 2);
});
