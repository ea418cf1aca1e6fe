import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { getHeapStatistics } from 'node:v8';
import { PodFollower, PodFollowLimits } from '#shared/engine/watch/follow-pods.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import type { Change, ListOptions, LivePod, Page, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { type DrivenTimers, drivenClock, driveTimers } from '#test/world/driven-timers.ts';
import { livePod } from './live-objects.ts';
import { PlayedResource, type PlayedWatch } from './played-resource.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const OWN_WATCHES = 100;
const WATCHES_IN_ALL = 1_000;
const n1 = nodeName('n1');

const podOn = (node: string, uid: string, version: string): LivePod =>
  livePod(uid, { node: nodeName(node), resourceVersion: version });
const upsert = (node: string, uid: string, version: string): Change<LivePod> => ({
  kind: 'upsert',
  object: podOn(node, uid, version),
});
const bookmark = (resourceVersion: string): WatchEvent<LivePod> => ({ kind: 'bookmark', resourceVersion });
const passed = (resourceVersion: string): WatchEvent<LivePod> => ({ kind: 'passed', resourceVersion });
const page = (resourceVersion: string, ...items: readonly LivePod[]): Page<LivePod> => ({
  items,
  resourceVersion,
});
const tooLarge = () =>
  new ApiError('Too large resource version', 504, 'Timeout', 1, { causes: ['ResourceVersionTooLarge'] });
const gone = () => new ApiError('too old resource version', 410, 'Expired');

interface Bench {
  readonly pods: PlayedResource<LivePod>;
  readonly follower: PodFollower;
  /** The calls of the sink, in short form. */
  readonly changes: string[];
  /** Called with each list before it is recorded. */
  onReplace: (node: string) => void;
  readonly failures: unknown[];
  /** The outcome of each request. */
  readonly outcomes: string[];
  /** The nodes that are followed no more, and `all`. */
  readonly ended: string[];
  readonly time: DrivenTimers;
  readonly abort: () => void;
  /** Follows the nodes n1, n2 and so on. */
  readonly addMany: (count: number) => Promise<void>;
  /** Returns the requested lists; `node`: only lists of that node. */
  readonly lists: (node?: string) => readonly ListOptions[];
  /** Returns the least version of each requested list. */
  readonly floors: (node?: string) => readonly (string | undefined)[];
  /** Returns the number of open watches. */
  readonly open: () => number;
  /** Returns the last watch of a node, or the shared watch without `node`. */
  readonly watch: (node?: string) => PlayedWatch<LivePod>;
}

/** Returns a follower of a cluster whose lists are empty at version 10, unless a test sets others. */
function bench(context: TestContext, limits = new PodFollowLimits(), time = driveTimers(context)): Bench {
  const aborting = new AbortController();
  context.after(() => aborting.abort());
  const pods = new PlayedResource<LivePod>(() => page('10'));
  const changes: string[] = [];
  const failures: unknown[] = [];
  const outcomes: string[] = [];
  const ended: string[] = [];
  const brief = (pod: LivePod) => `${pod.uid}@${pod.resourceVersion}`;
  const follower = new PodFollower(
    pods,
    {
      replace: (node, all) => {
        made.onReplace(node);
        changes.push([`${node}:`, ...all.map(brief)].join(' '));
      },
      change: ({ kind, object }) => changes.push(`${kind} ${brief(object)}`),
      failed: (error, attempt) => {
        failures.push(error);
        outcomes.push(`${attempt ? `${attempt.request} ${attempt.of}` : 'all pods'}: failed`);
      },
      answered: ({ request, of }) => outcomes.push(`${request} ${of}`),
      ended: (of) => ended.push(of),
    },
    { limits, clock: drivenClock, signal: aborting.signal },
  );
  const lists = (node?: string) => pods.listed.filter(({ onNode }) => node === undefined || onNode === node);
  const made: Bench = {
    pods,
    follower,
    changes,
    onReplace: () => undefined,
    failures,
    outcomes,
    ended,
    time,
    abort: () => aborting.abort(),
    addMany: async (count) => {
      for (let index = 1; index <= count; index++) follower.add(nodeName(`n${index}`));
      // Lists get their slots four at a time.
      for (let turns = 0; turns < count / 4; turns++) await time.settle();
    },
    lists,
    floors: (node) => lists(node).map(({ notOlderThan }) => notOlderThan),
    open: () => pods.watched.filter(({ isOpen }) => isOpen).length,
    watch: (node) => {
      const found = pods.watched.findLast(({ options }) => options.onNode === node);
      assert.ok(found, `there is no watch of ${node ?? 'all pods'}`);
      return found;
    },
  };
  return made;
}

/** Returns limits whose watches other clusters use, so that every node shares a watch. */
function allTaken(): PodFollowLimits {
  const limits = new PodFollowLimits();
  for (let taken = 0; taken < WATCHES_IN_ALL; taken++) limits.takeWatch();
  return limits;
}

/** Returns a follower of the node n1. */
async function following(context: TestContext, limits?: PodFollowLimits): Promise<Bench> {
  const given = bench(context, limits);
  given.follower.add(n1);
  await given.time.settle();
  return given;
}

/** Holds back the answers to lists until the test sends them. */
function hold(pods: PlayedResource<LivePod>) {
  const held: { readonly options: ListOptions; readonly answer: (page: Page<LivePod>) => void }[] = [];
  pods.answer = (options) => new Promise((resolve) => held.push({ options, answer: resolve }));
  return held;
}

describe('a node', () => {
  test('has its pods listed from the cache in one page, and its own watch from there', async (context) => {
    const given = bench(context);
    given.pods.answer = () => page('10', podOn('n1', 'u1', '7'));
    given.follower.add(n1);
    await given.time.settle();
    assert.deepEqual(given.changes, ['n1: u1@7']);
    const [{ onNode, notOlderThan, limit } = {}] = given.lists();
    assert.deepEqual({ onNode, notOlderThan, limit }, { onNode: 'n1', notOlderThan: '0', limit: undefined });
    const { options } = given.watch('n1');
    assert.deepEqual([options.resourceVersion, options.initial], ['10', undefined]);
    given.watch('n1').send(upsert('n1', 'u2', '11'), { kind: 'delete', object: podOn('n1', 'u1', '12') });
    await given.time.settle();
    assert.deepEqual(given.changes.slice(1), ['upsert u2@11', 'delete u1@12']);
  });

  test('is followed once when it is added twice', async (context) => {
    const given = bench(context);
    given.follower.add(n1);
    given.follower.add(n1);
    await given.time.settle();
    assert.equal(given.lists().length, 1);
    assert.equal(given.pods.watched.length, 1);
  });

  test('has its requests ended when it is removed, without further changes', async (context) => {
    const given = await following(context);
    const watch = given.watch('n1');
    given.follower.remove(n1);
    watch.send(upsert('n1', 'u1', '11'));
    await given.time.pass(MINUTE);
    assert.equal(watch.isOpen, false);
    assert.deepEqual(given.changes, ['n1:']);
    assert.equal(given.pods.watched.length, 1);
    assert.deepEqual(given.failures, []);
  });

  test('has its list aborted when it is removed meanwhile, and a late answer is ignored', async (context) => {
    const given = bench(context);
    const held = hold(given.pods);
    given.follower.add(n1);
    await given.time.settle();
    given.follower.remove(n1);
    given.follower.add(n1);
    await given.time.settle();
    assert.equal(held[0]?.options.signal.aborted, true);
    held[0]?.answer(page('8', podOn('n1', 'phantom', '3')));
    held[1]?.answer(page('10'));
    await given.time.settle();
    assert.deepEqual(given.changes, ['n1:']);
    assert.deepEqual(given.failures, []);
  });

  test('resumes an ended or broken watch without a list', async (context) => {
    const given = await following(context);
    given.watch('n1').send(upsert('n1', 'u1', '11'), bookmark('15'));
    given.watch('n1').end();
    await given.time.settle();
    assert.equal(given.watch('n1').options.resourceVersion, '15');
    given.watch('n1').end(new ApiError('the connection was reset', 0));
    await given.time.pass(SECOND);
    assert.equal(given.pods.watched.length, 3);
    assert.equal(given.watch('n1').options.resourceVersion, '15');
    assert.equal(given.lists().length, 1);
    assert.equal(given.failures.length, 1);
  });

  test('is listed again when its version is too old, not older than the last event', async (context) => {
    const given = await following(context);
    given.watch('n1').send(upsert('n1', 'u1', '11'));
    await given.time.settle();
    given.pods.answer = () => page('20', podOn('n1', 'u2', '19'));
    given.watch('n1').end(gone());
    await given.time.pass(SECOND);
    assert.equal(given.lists()[1]?.notOlderThan, '11');
    assert.deepEqual(given.changes, ['n1:', 'upsert u1@11', 'n1: u2@19']);
    assert.equal(given.watch('n1').options.resourceVersion, '20');
    assert.deepEqual(given.failures, []);
  });

  test('is listed again when its watch is silent', async (context) => {
    const given = bench(context);
    given.follower.add(n1);
    await given.time.pass(155 * SECOND);
    assert.equal(given.lists().length, 2);
    assert.equal(given.pods.watched.length, 2);
    assert.match(String(given.failures[0]), /silent for 2m30s/);
  });

  test('is listed again after Retry-After when its list fails', async (context) => {
    const given = bench(context);
    given.pods.answer = () => {
      throw new ApiError('too many requests', 429, 'TooManyRequests', 20);
    };
    given.follower.add(n1);
    await given.time.pass(19 * SECOND);
    assert.equal(given.lists().length, 1);
    given.pods.answer = () => page('10');
    await given.time.pass(2 * SECOND);
    assert.deepEqual(given.changes, ['n1:']);
    assert.equal(given.failures.length, 1);
  });
});

for (const [whose, expected] of [
  ['own', 'n1'],
  ['shared', undefined],
] as const) {
  const followed = (context: TestContext) => following(context, expected ? undefined : allTaken());

  test(`reports a version of a node’s ${whose} watch that is too old only when the next one is, too`, async (context) => {
    const given = await followed(context);
    for (const version of ['20', '30']) {
      given.pods.answer = () => page(version);
      given.watch(expected).end(gone());
      await given.time.pass(2 * SECOND);
      given.watch(expected).send(bookmark(version));
      await given.time.settle();
    }
    assert.deepEqual(given.failures, []);
    given.watch(expected).end(gone());
    await given.time.pass(2 * SECOND);
    given.watch(expected).end(gone());
    await given.time.settle();
    assert.equal(given.failures.length, 1);
  });

  test(`resumes a node’s ${whose} watch after growing pauses, until an event`, async (context) => {
    const given = await followed(context);
    const resumedAfterBreak = async () => {
      const before = given.pods.watched.length;
      given.watch(expected).end(new ApiError('the connection was reset', 0));
      await given.time.pass(SECOND);
      return given.pods.watched.length > before;
    };
    for (let tries = 0; tries < 8; tries++) {
      await resumedAfterBreak();
      await given.time.pass(MINUTE);
    }
    assert.equal(await resumedAfterBreak(), false);
    await given.time.pass(MINUTE);
    given.watch(expected).send(bookmark('11'));
    await given.time.settle();
    assert.equal(await resumedAfterBreak(), true);
  });

  test(`reports the outcome of each request of a node’s ${whose} watch`, async (context) => {
    const given = await followed(context);
    const of = expected ?? 'all';
    const steps = async (change: () => unknown, passMs = 0) => {
      given.outcomes.length = 0;
      change();
      await given.time.pass(passMs);
      return [...given.outcomes];
    };
    assert.deepEqual(given.outcomes, expected ? ['list n1'] : ['list all', 'list n1']);
    assert.deepEqual(await steps(() => given.watch(expected).send(bookmark('11'))), [`watch ${of}`]);
    const broken = new ApiError('the connection was reset', 0);
    assert.deepEqual(await steps(() => given.watch(expected).end(broken)), [`watch ${of}: failed`]);
    given.pods.answer = () => {
      throw new ApiError('forbidden', 403);
    };
    await given.time.pass(SECOND);
    const failing = await steps(() => given.watch(expected).end(gone()), 5 * SECOND);
    assert.deepEqual(new Set(failing), new Set([`list ${of}: failed`]));
  });

  test(`reports the end of a node with its ${whose} watch once`, async (context) => {
    const given = await followed(context);
    given.follower.remove(n1);
    given.follower.remove(n1);
    assert.deepEqual(given.ended, expected ? ['n1'] : ['n1', 'all']);
  });
}

test('gives the watch of a removed node back for other clusters', async (context) => {
  const limits = new PodFollowLimits();
  for (let taken = 1; taken < WATCHES_IN_ALL; taken++) limits.takeWatch();
  const given = await following(context, limits);
  given.follower.remove(n1);
  const other = bench(context, limits, given.time);
  other.follower.add(n1);
  await given.time.settle();
  assert.ok(other.watch('n1').isOpen);
});

test('asks a server that is behind (504) three more times from its cache, then for its latest state', async (context) => {
  const given = await following(context);
  given.watch('n1').send(upsert('n1', 'u1', '11'));
  await given.time.settle();
  given.pods.answer = ({ notOlderThan }) => {
    if (notOlderThan !== undefined) throw tooLarge();
    return page('12');
  };
  given.watch('n1').end(gone());
  await given.time.pass(10 * SECOND);
  assert.deepEqual(given.floors(), ['0', '11', '11', '11', undefined]);
  assert.deepEqual(given.changes.at(-1), 'n1:');
  assert.deepEqual(given.failures, []);
});

test('reports a server that is behind for its latest state, too', async (context) => {
  const given = bench(context);
  given.pods.answer = () => {
    throw tooLarge();
  };
  given.follower.add(n1);
  while (given.failures.length === 0) await given.time.pass(50);
  assert.deepEqual(given.floors(), ['0', '0', '0', undefined]);
});

describe('a restored etcd', () => {
  test('is detected from an older event: every node is listed again, from any version', async (context) => {
    const given = bench(context);
    given.follower.add(n1);
    given.follower.add(nodeName('n2'));
    await given.time.settle();
    given.pods.answer = () => page('5');
    given.watch('n1').send(upsert('n1', 'u1', '4'));
    await given.time.settle();
    for (const node of ['n1', 'n2']) {
      assert.deepEqual(given.floors(node), ['0', '0']);
      assert.equal(given.watch(node).options.resourceVersion, '5');
    }
    assert.deepEqual(given.changes, ['n1:', 'n2:', 'n1:', 'n2:']);
  });

  test('is detected from a list that is older than the last event', async (context) => {
    const given = bench(context);
    given.follower.add(n1);
    given.follower.add(nodeName('n2'));
    await given.time.settle();
    given.pods.answer = () => page('5');
    given.watch('n1').end(gone());
    await given.time.pass(SECOND);
    for (const node of ['n1', 'n2']) assert.equal(given.watch(node).options.resourceVersion, '5');
  });

  test('is not detected from a late list of a node that was removed', async (context) => {
    const given = await following(context);
    given.follower.add(nodeName('n2'));
    await given.time.settle();
    const held = hold(given.pods);
    given.follower.relist();
    await given.time.settle();
    given.follower.remove(n1);
    held[0]?.answer(page('5'));
    await given.time.settle();
    assert.deepEqual(given.ended, ['n1']);
  });
});

describe('beyond a hundred nodes', () => {
  test('the other nodes share one watch, which reads only their pods', async (context) => {
    const given = bench(context);
    await given.addMany(OWN_WATCHES + 2);
    const shared = given.watch();
    assert.equal(given.open(), OWN_WATCHES + 1);
    assert.equal(shared.options.resourceVersion, '10');
    const { follows } = shared.options;
    assert.deepEqual(
      ['n1', `n${OWN_WATCHES + 1}`, 'n999'].map((node) => follows?.(nodeName(node))),
      [false, true, false],
    );
    shared.send(
      upsert(`n${OWN_WATCHES + 1}`, 'u1', '11'),
      upsert('n1', 'u2', '12'),
      upsert('n999', 'u3', '13'),
    );
    await given.time.settle();
    assert.deepEqual(given.changes.slice(OWN_WATCHES + 2), ['upsert u1@11']);
    assert.ok(given.lists().every(({ onNode }) => onNode !== undefined));
  });

  test('a list is not older than the last event of the shared watch, for any bookmarks', async (context) => {
    const given = await following(context, allTaken());
    given.watch().send(upsert('n1', 'u1', '11'), passed('12'), bookmark('99'));
    await given.time.settle();
    given.pods.answer = () => page('100');
    given.follower.add(nodeName('n2'));
    await given.time.settle();
    assert.equal(given.lists('n2')[0]?.notOlderThan, '12');
  });

  test('an event during a list counts if it is newer', async (context) => {
    const given = await following(context, allTaken());
    const held = hold(given.pods);
    given.follower.add(nodeName('n2'));
    await given.time.settle();
    given.watch().send({ kind: 'delete', object: podOn('n2', 'u1', '11') }, upsert('n2', 'u2', '13'));
    await given.time.settle();
    held[0]?.answer(page('12', podOn('n2', 'u3', '9')));
    await given.time.settle();
    assert.deepEqual(given.changes, ['n1:', 'n2: u3@9 u2@13']);
  });

  test('an expired shared watch starts at the latest version, and its nodes are listed again from there', async (context) => {
    const given = await following(context, allTaken());
    given.pods.answer = () => page('50');
    given.watch().end(gone());
    await given.time.pass(SECOND);
    const [newest, again] = given.lists('n1').slice(-2);
    assert.deepEqual([newest?.notOlderThan, again?.notOlderThan], [undefined, '50']);
    assert.equal(given.watch().options.resourceVersion, '50');
    assert.deepEqual(given.changes, ['n1:', 'n1:']);
  });

  test('an expired shared watch lists no node again that has its own', async (context) => {
    const given = bench(context);
    await given.addMany(OWN_WATCHES + 1);
    given.watch().end(gone());
    await given.time.pass(SECOND);
    assert.equal(given.lists('n2').length, 1);
    assert.equal(given.changes.length, OWN_WATCHES + 2);
  });

  test('a list from before an expired shared watch starts again is followed by another', async (context) => {
    const given = await following(context, allTaken());
    const held = hold(given.pods);
    given.follower.add(nodeName('n2'));
    await given.time.settle();
    given.watch().end(gone());
    await given.time.pass(SECOND);
    for (const [index, version] of [
      [1, '50'],
      [0, '12'],
    ] as const) {
      held[index]?.answer(page(version));
      await given.time.settle();
    }
    assert.deepEqual(given.floors('n2'), ['10', '50']);
  });

  test('a silent shared watch starts at the latest version, and its nodes are listed again, in case of a restored etcd', async (context) => {
    const given = await following(context, allTaken());
    given.pods.answer = () => page('50', podOn('n1', 'u1', '49'));
    await given.time.pass(152 * SECOND);
    assert.equal(given.watch().options.resourceVersion, '50');
    assert.deepEqual(given.changes, ['n1:', 'n1: u1@49']);
  });

  test('the changes of a gap are listed also when the request of the latest version fails at first', async (context) => {
    const given = await following(context, allTaken());
    const refusals = [1, 2];
    given.pods.answer = () => {
      if (refusals.pop()) throw new ApiError('unavailable', 503);
      return page('50', podOn('n1', 'u1', '49'));
    };
    given.watch().end(gone());
    await given.time.pass(5 * SECOND);
    assert.deepEqual(given.floors('n1'), ['0', '10', undefined, undefined, undefined, '50']);
    assert.deepEqual(given.changes, ['n1:', 'n1: u1@49']);
  });

  test('each node gets its own watch again after five minutes with few nodes', async (context) => {
    const given = bench(context);
    await given.addMany(OWN_WATCHES + 1);
    const shared = given.watch();
    const keepAlive = () => {
      for (const watch of given.pods.watched) if (watch.isOpen) watch.send(bookmark('20'));
    };
    const last = `n${OWN_WATCHES + 1}`;
    const passMinutes = async (count: number) => {
      for (let minutes = 0; minutes < count; minutes++) {
        await given.time.pass(MINUTE);
        keepAlive();
      }
      return shared.isOpen;
    };
    for (let index = 1; index <= 31; index++) given.follower.remove(nodeName(`n${index}`));
    assert.equal(await passMinutes(6), true, '70 nodes are not few');
    given.follower.remove(nodeName('n32'));
    assert.equal(await passMinutes(4), true);
    shared.send(passed('25'));
    given.pods.answer = () => page('30');
    await given.time.pass(61 * SECOND);
    assert.equal(shared.isOpen, false);
    assert.deepEqual([given.watch(last).isOpen, given.open()], [true, 69]);
    assert.equal(given.lists(last).at(-1)?.notOlderThan, '25');
  });

  test('a node whose list fails meanwhile gets its own watch, too, and one list once it succeeds', async (context) => {
    const given = bench(context);
    const last = `n${OWN_WATCHES + 1}`;
    let fails = true;
    given.pods.answer = ({ onNode, notOlderThan }) => {
      if (fails && onNode === last && notOlderThan !== '0') throw new ApiError('unavailable', 503);
      return page('10');
    };
    await given.addMany(OWN_WATCHES + 1);
    for (let index = 1; index <= 40; index++) given.follower.remove(nodeName(`n${index}`));
    for (let minutes = 0; minutes < 6; minutes++) {
      for (const watch of given.pods.watched) if (watch.isOpen) watch.send(bookmark('20'));
      await given.time.pass(MINUTE);
    }
    const errors = new Set(given.failures.map(String));
    assert.equal(errors.size, 1, String([...errors]));
    const before = given.changes.length;
    fails = false;
    await given.time.pass(MINUTE);
    assert.deepEqual(given.changes.slice(before), [`${last}:`]);
    assert.ok(given.watch(last).isOpen);
  });

  test('the shared watch stays when the number of nodes grows again meanwhile', async (context) => {
    const given = bench(context);
    await given.addMany(OWN_WATCHES + 1);
    for (let index = 1; index <= 40; index++) given.follower.remove(nodeName(`n${index}`));
    await given.time.pass(2 * MINUTE);
    for (let index = 1; index <= 40; index++) given.follower.add(nodeName(`n${index}`));
    const shared = given.watch();
    shared.send(bookmark('20'));
    await given.time.pass(2 * MINUTE);
    shared.send(bookmark('21'));
    await given.time.pass(2 * MINUTE);
    assert.equal(shared.isOpen, true);
    for (let index = 1; index <= 40; index++) given.follower.remove(nodeName(`n${index}`));
    for (let minutes = 0; minutes < 5; minutes++) {
      shared.send(bookmark('22'));
      await given.time.pass(MINUTE);
    }
    assert.equal(shared.isOpen, false);
  });

  test('no watch remains without nodes', async (context) => {
    const given = bench(context);
    await given.addMany(OWN_WATCHES + 1);
    for (let index = 1; index <= OWN_WATCHES + 1; index++) given.follower.remove(nodeName(`n${index}`));
    await given.time.settle();
    assert.equal(given.open(), 0);
  });
});

describe('lists', () => {
  test('run four at a time, with the last tainted node first', async (context) => {
    const given = bench(context);
    const held = hold(given.pods);
    await given.addMany(8);
    const listed = () => held.map(({ options }) => options.onNode);
    assert.deepEqual(listed(), ['n1', 'n2', 'n3', 'n4']);
    held[0]?.answer(page('10'));
    await given.time.settle();
    held[1]?.answer(page('10'));
    await given.time.settle();
    assert.deepEqual(listed().slice(4), ['n8', 'n7']);
  });

  test('that are repeated run after all others', async (context) => {
    const given = bench(context);
    await given.addMany(6);
    const held = hold(given.pods);
    given.follower.relist();
    await given.time.settle();
    given.follower.add(nodeName('n7'));
    held[0]?.answer(page('10'));
    await given.time.settle();
    assert.deepEqual(
      held.map(({ options }) => options.onNode),
      ['n1', 'n2', 'n3', 'n4', 'n7'],
    );
  });

  test('that failed are not repeated before their time', async (context) => {
    const given = bench(context);
    given.pods.answer = () => {
      throw new ApiError('too many requests', 429, 'TooManyRequests', 20);
    };
    given.follower.add(n1);
    await given.time.settle();
    given.follower.relist();
    await given.time.pass(SECOND);
    assert.equal(given.lists().length, 1);
  });

  test('run eight at a time in the whole process', async (context) => {
    const limits = new PodFollowLimits();
    const time = driveTimers(context);
    const clusters = [1, 2, 3].map(() => bench(context, limits, time));
    const held = clusters.map(({ pods }) => hold(pods));
    for (const given of clusters) await given.addMany(6);
    assert.deepEqual(
      held.map(({ length }) => length),
      [4, 4, 0],
    );
  });

  test('are not requested for nodes that were removed while they waited', async (context) => {
    const given = bench(context);
    const held = hold(given.pods);
    await given.addMany(8);
    for (let index = 5; index <= 8; index++) given.follower.remove(nodeName(`n${index}`));
    for (const { answer } of [...held]) answer(page('10'));
    await given.time.settle();
    assert.equal(held.length, 4);
    assert.deepEqual(given.failures, []);
  });

  test('are repeated for the hundred nodes with the oldest list', async (context) => {
    const given = bench(context);
    const count = OWN_WATCHES + 20;
    await given.addMany(count);
    const before = given.lists().length;
    await given.time.pass(SECOND);
    given.follower.relist();
    for (let turns = 0; turns < 40; turns++) await given.time.settle();
    const first = new Set(
      given
        .lists()
        .slice(before)
        .map(({ onNode }) => onNode),
    );
    assert.equal(first.size, 100);
    await given.time.pass(SECOND);
    given.follower.relist();
    for (let turns = 0; turns < 40; turns++) await given.time.settle();
    const second = given.lists().slice(before + 100);
    for (let index = 1; index <= count; index++) {
      const name = nodeName(`n${index}`);
      assert.ok(
        first.has(name) || second.some(({ onNode }) => onNode === name),
        `${name} was not listed again`,
      );
    }
  });

  for (const [when, isRemoved, failures] of [
    ['is reported', false, ['list n1: failed']],
    ['is not reported for a node that was removed meanwhile', true, []],
  ] as const)
    test(`a failure of a repeated list ${when}`, async (context) => {
      const given = await following(context);
      const answer = Promise.withResolvers<Page<LivePod>>();
      given.pods.answer = () => answer.promise;
      given.follower.relist();
      await given.time.settle();
      if (isRemoved) given.follower.remove(n1);
      answer.reject(new ApiError('unavailable', 503));
      await given.time.settle();
      assert.deepEqual(given.outcomes.slice(1), failures);
    });

  test('are replaced by a list of all pods by pages when they are slow and many wait', async (context) => {
    const given = bench(context);
    given.pods.answer = async ({ onNode, continue: token }) => {
      if (onNode !== undefined) await new Promise((resolve) => setTimeout(resolve, 2 * SECOND));
      if (onNode !== undefined) return page('10');
      if (token && refusals-- > 0) throw new ApiError('too many requests', 429, 'TooManyRequests', 1);
      const next = podOn(token ? 'n2' : 'n80', token ? 'u2' : 'u80', '9');
      const unbound = livePod('u9', { node: undefined });
      return { ...page('10', next, unbound), ...(token ? {} : { continue: 'more' }) };
    };
    let refusals = 1;
    await given.addMany(90);
    await given.time.pass(2.5 * SECOND);
    given.follower.remove(nodeName('n50'));
    await given.time.pass(MINUTE);
    const all = given.lists().filter(({ onNode }) => onNode === undefined);
    assert.deepEqual(
      all.map(({ limit, continue: token, notOlderThan }) => [limit, token, notOlderThan]),
      [
        [500, undefined, undefined],
        [500, 'more', undefined],
        [500, 'more', undefined],
      ],
    );
    const listed = given.changes.map((line) => line.split(':')[0]);
    assert.deepEqual([new Set(listed).size, listed.includes('n50')], [89, false]);
    assert.ok(given.changes.includes('n80: u80@9'));
    assert.ok(given.lists().length < 20, `${given.lists().length} lists`);
    assert.deepEqual(
      given.outcomes.filter((outcome) => outcome.endsWith('failed')),
      ['all pods: failed'],
    );
  });

  test('are requested for a node whose pods the sink rejected from a list of all pods', async (context) => {
    const given = bench(context);
    given.pods.answer = async ({ onNode }) => {
      if (onNode !== undefined) await new Promise((resolve) => setTimeout(resolve, 2 * SECOND));
      return page('10');
    };
    given.onReplace = (node) => {
      if (node !== 'n50') return;
      given.onReplace = () => undefined;
      throw new Error('not now');
    };
    for (let index = 1; index <= 90; index++) given.follower.add(nodeName(`n${index}`));
    await given.time.pass(2 * MINUTE);
    assert.equal(new Set(given.changes).size, 90);
  });

  test('do not count as waiting after their removal, so few nodes are listed one by one', async (context) => {
    const given = bench(context);
    given.pods.answer = async () => {
      await new Promise((resolve) => setTimeout(resolve, 2 * SECOND));
      return page('10');
    };
    await given.addMany(90);
    for (let index = 11; index <= 90; index++) given.follower.remove(nodeName(`n${index}`));
    await given.time.pass(6 * SECOND);
    const listed = given.lists().map(({ onNode }) => onNode);
    assert.deepEqual(new Set(listed), new Set(Array.from({ length: 10 }, (_, index) => `n${index + 1}`)));
  });

  test('are not replaced for a minute after a list of all pods failed', async (context) => {
    const given = bench(context);
    given.pods.answer = async ({ onNode }) => {
      if (onNode === undefined) throw new ApiError('forbidden', 403);
      await new Promise((resolve) => setTimeout(resolve, 10 * SECOND));
      return page('10');
    };
    const all = () => given.lists().filter(({ onNode }) => onNode === undefined).length;
    await given.addMany(90);
    await given.time.pass(11 * SECOND);
    assert.equal(all(), 1);
    await given.time.pass(58 * SECOND);
    assert.equal(all(), 1);
    await given.time.pass(12 * SECOND);
    assert.equal(all(), 2);
    assert.equal(given.outcomes.filter((outcome) => outcome === 'all pods: failed').length, 2);
  });

  test('free the memory of a list of all pods after it completes', async (context) => {
    const given = bench(context);
    const labels = { large: 'x'.repeat(getHeapStatistics().heap_size_limit / 600) };
    given.pods.answer = async ({ onNode, continue: token = '0' }) => {
      if (onNode !== undefined) await new Promise((resolve) => setTimeout(resolve, 2 * SECOND));
      if (onNode !== undefined) return page('10');
      const all = page('10', { ...podOn('n90', `u${token}`, '9'), labels });
      return Number(token) < 60 ? { ...all, continue: `${Number(token) + 1}` } : all;
    };
    for (const _ of [1, 2]) {
      await given.addMany(90);
      await given.time.pass(20 * SECOND);
      for (let index = 1; index <= 90; index++) given.follower.remove(nodeName(`n${index}`));
    }
    assert.ok(given.lists().filter(({ continue: token }) => token === '60').length === 2);
    assert.deepEqual(given.failures, []);
  });

  test('stop an endless list of all pods at the memory limit, and list each node nevertheless', async (context) => {
    const given = bench(context);
    const labels = { large: 'x'.repeat(getHeapStatistics().heap_size_limit / 600) };
    given.pods.answer = async ({ onNode }) => {
      if (onNode !== undefined) await new Promise((resolve) => setTimeout(resolve, 2 * SECOND));
      const made = { ...podOn('n90', `u${given.lists().length}`, '9'), labels };
      return onNode === undefined ? { ...page('10', made), continue: 'more' } : page('10');
    };
    await given.addMany(90);
    await given.time.pass(60 * SECOND);
    const all = given.lists().filter(({ onNode }) => onNode === undefined);
    assert.ok(all.length >= 90 && all.length <= 110, `${all.length} pages`);
    assert.match((given.failures[0] as Error).message, /^The pods of its tainted nodes exceed /);
    assert.equal(new Set(given.changes).size, 90);
  });
});

test('ends all requests when it is aborted, and makes no more', async (context) => {
  const given = bench(context);
  await given.addMany(3);
  given.abort();
  given.follower.add(nodeName('n9'));
  await given.time.pass(MINUTE);
  assert.equal(given.lists().length, 3);
  assert.equal(given.open(), 0);
  assert.deepEqual(given.failures, []);
});
