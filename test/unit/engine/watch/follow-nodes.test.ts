import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { followNodes } from '#shared/engine/watch/follow-nodes.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import type { Change, LiveNode, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { type DrivenTimers, drivenClock, driveTimers } from '#test/world/driven-timers.ts';
import { liveNode } from './live-objects.ts';
import { ends, endsAfter, ScriptedResource } from './scripted-resource.ts';

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
/** Returns the events of a streamed list of these nodes. */
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

type NodeWatch = ScriptedResource<LiveNode>['watches'][number];

interface Bench {
  readonly nodes: ScriptedResource<LiveNode>;
  /** The calls of the sink, in short form. */
  readonly changes: string[];
  readonly failures: unknown[];
  readonly answers: string[];
  /** The number of messages from the server, including bookmarks. */
  readonly signs: () => number;
  readonly time: DrivenTimers;
  readonly ended: () => boolean;
  /** Starts it, and lets this time pass. Resolves with the calls of the sink. */
  readonly start: (passMs?: number) => Promise<readonly string[]>;
  readonly abort: () => void;
  /** Called with each change before it is recorded. */
  onChange: (change: Change<LiveNode>) => void;
  /** Called before each list and watch. */
  claim: () => Promise<void>;
}

/** Returns a follower that is not started yet, and is aborted at the end of the test. */
function bench(
  context: TestContext,
  watches: readonly NodeWatch[] = [ends('quiet', ...streamed('1'))],
): Bench {
  const time = driveTimers(context);
  const aborting = new AbortController();
  context.after(() => aborting.abort());
  let ended = false;
  let signs = 0;
  const made: Bench = {
    nodes: new ScriptedResource<LiveNode>(),
    changes: [],
    failures: [],
    answers: [],
    signs: () => signs,
    time,
    onChange: () => undefined,
    claim: async () => undefined,
    ended: () => ended,
    abort: () => aborting.abort(),
    start: async (passMs = 0) => {
      const sink = {
        replace: (objects: readonly LiveNode[]) => {
          made.changes.push(`all: ${objects.map(({ name }) => name).join(' ')}`);
        },
        change: (change: Change<LiveNode>) => {
          made.onChange(change);
          made.changes.push(`${change.kind} ${change.object.name}`);
        },
        contact: () => {
          signs += 1;
        },
        failed: (error: unknown, request: string) => {
          made.failures.push(error);
          made.answers.push(`${request} failed`);
        },
        answered: (request: string) => made.answers.push(request),
        rewound: () => made.changes.push('rewound'),
      };
      const deps = { clock: drivenClock, signal: aborting.signal, claim: () => made.claim() };
      void followNodes(made.nodes, sink, deps).then(() => {
        ended = true;
      });
      await time.pass(passMs);
      return made.changes;
    },
  };
  made.nodes.streams = false;
  made.nodes.watches = [...watches];
  return made;
}

/** Returns the start of each requested watch. */
const watchedFrom = ({ nodes }: Bench) =>
  nodes.watched.map(({ initial, resourceVersion }) => (initial ? 'all' : resourceVersion));

describe('a streamed list', () => {
  test('is passed on at its end marker, and continues on the same watch', async (context) => {
    const given = bench(context, [ends('hang', ...streamed('7', 'a', 'b'), upsert('c', '8'))]);
    assert.deepEqual(await given.start(), ['all: a b', 'upsert c']);
    assert.deepEqual(watchedFrom(given), ['all']);
    assert.deepEqual(given.nodes.listed, []);
  });

  test('is not passed on before its end, for any bookmarks', async (context) => {
    const given = bench(context, [ends('hang', upsert('a', '5'), bookmark('6'))]);
    assert.deepEqual(await given.start(SECOND), []);
  });

  test('is dropped when it ends early, and requested again', async (context) => {
    const given = bench(context, [ends(undefined, upsert('a', '5')), ends('hang', ...streamed('7', 'b'))]);
    assert.deepEqual(await given.start(SECOND), ['all: b']);
    assert.deepEqual(watchedFrom(given), ['all', 'all']);
    assert.match(String(given.failures[0]), /ended early/);
  });

  test('is replaced by pages of 50 when it breaks twice, with a watch from there', async (context) => {
    const given = bench(context, [
      ends(broken(), upsert('a', '5')),
      ends(undefined, upsert('a', '5')),
      ends('hang'),
    ]);
    given.nodes.lists = [{ ...page('7', 'a', 'b'), continue: 'more' }, page('7', 'c')];
    assert.deepEqual(await given.start(2 * SECOND), ['all: a b c']);
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

  test('is streamed each time when it breaks rarely and completes in between', async (context) => {
    const given = bench(context, [
      ends(broken(), upsert('a', '5')),
      ends(gone(), ...streamed('7', 'a')),
      ends(broken(), upsert('a', '8')),
      ends('hang', ...streamed('9', 'a', 'b')),
    ]);
    assert.deepEqual(await given.start(5 * SECOND), ['all: a', 'all: a b']);
    assert.deepEqual(given.nodes.listed, []);
  });

  test('is not taken for broken when the claim before it fails', async (context) => {
    const given = bench(context, [ends(broken(), upsert('a', '5')), ends('hang', ...streamed('7', 'a'))]);
    let claims = 0;
    given.claim = async () => {
      claims += 1;
      if (claims === 2 || claims === 3) throw broken();
    };
    assert.deepEqual(await given.start(5 * SECOND), ['all: a']);
    assert.deepEqual(given.nodes.listed, []);
    assert.equal(given.failures.length, 3);
  });

  for (const status of [400, 422]) {
    test(`is replaced by pages immediately when the server does not support it (${status})`, async (context) => {
      const given = bench(context, [ends(refused(status)), ends('hang')]);
      given.nodes.lists = [page('7', 'a')];
      assert.deepEqual(await given.start(), ['all: a']);
      assert.deepEqual(watchedFrom(given), ['all', '7']);
      assert.deepEqual(given.failures, []);
    });
  }

  test('is streamed again after a list by pages, because the server may have changed', async (context) => {
    const given = bench(context, [ends(refused(422)), ends(gone()), ends('hang', ...streamed('9', 'b'))]);
    given.nodes.lists = [page('7', 'a')];
    assert.deepEqual(await given.start(5 * SECOND), ['all: a', 'all: b']);
    assert.deepEqual(watchedFrom(given), ['all', '7', 'all']);
  });

  test('is requested again after ten minutes for a Retry-After of a day', async (context) => {
    const given = bench(context, [ends(refused(429, 24 * 3600)), ends('hang', ...streamed('7', 'a'))]);
    await given.start(10 * MINUTE - SECOND);
    assert.equal(given.nodes.watched.length, 1);
    await given.time.pass(2 * SECOND);
    assert.deepEqual(given.changes, ['all: a']);
  });

  test('is streamed again after Retry-After', async (context) => {
    const given = bench(context, [
      ends(refused(429, 30)),
      ends(refused(503, 20)),
      ends('hang', ...streamed('7', 'a')),
    ]);
    await given.start(29 * SECOND);
    assert.equal(given.nodes.watched.length, 1);
    await given.time.pass(20 * SECOND);
    assert.equal(given.nodes.watched.length, 2);
    await given.time.pass(2 * SECOND);
    assert.deepEqual(given.changes, ['all: a']);
    assert.deepEqual(given.nodes.listed, []);
    assert.equal(given.failures.length, 2);
  });
});

describe('a list by pages', () => {
  const paged = (context: TestContext) => bench(context, [ends(refused(422)), ends('hang')]);
  const more = (token: string, ...names: readonly string[]) => ({ ...page('7', ...names), continue: token });

  for (const status of [429, 500, 503]) {
    test(`requests a failed page (${status}) again after Retry-After`, async (context) => {
      const given = paged(context);
      given.nodes.lists = [
        more('2', 'a'),
        refused(status, 5),
        refused(status, 5),
        more('3', 'b'),
        page('7', 'c'),
      ];
      assert.deepEqual(await given.start(9 * SECOND), []);
      await given.time.pass(2 * SECOND);
      assert.deepEqual(given.changes, ['all: a b c']);
      assert.deepEqual(
        given.nodes.listed.map((options) => options.continue),
        [undefined, '2', '2', '2', '3'],
      );
      assert.equal(given.failures.length, 2);
    });
  }

  test('completes where every second page fails, and reports each page as contact', async (context) => {
    const given = paged(context);
    const pages = Array.from({ length: 30 }, (_, index) => more(`${index}`, `n${index}`));
    given.nodes.lists = [...pages.flatMap((each) => [refused(429, 1), each]), page('7', 'last')];
    await given.start(MINUTE);
    assert.equal(given.changes.length, 1);
    assert.equal(given.nodes.listed.length, 61);
    assert.equal(given.signs(), 32, 'for each page, and for the open watch');
  });

  test('starts again when its pages expire', async (context) => {
    const given = paged(context);
    given.nodes.watches = [ends(refused(422))];
    given.nodes.lists = [more('2', 'a'), gone(), page('9', 'b')];
    assert.deepEqual(await given.start(SECOND), ['all: b']);
    assert.equal(given.nodes.listed[2]?.continue, undefined);
  });

  test('ends the backoff of the failures before it', async (context) => {
    const given = bench(context, [ends(refused(422)), ends(broken()), ends('hang')]);
    given.nodes.lists = [...Array.from({ length: 8 }, broken), page('7', 'a')];
    await given.start();
    while (given.changes.length === 0) await given.time.pass(100);
    await given.time.pass(300);
    assert.deepEqual(watchedFrom(given), ['all', '7', '7']);
  });

  test('accepts a page of any length', async (context) => {
    const given = paged(context);
    given.nodes.lists = [
      { items: Array.from({ length: 200_000 }, () => node('a', '1')), resourceVersion: '1' },
    ];
    await given.start();
    assert.equal(given.changes.length, 1);
  });
});

describe('a failing server', () => {
  for (const [how, error, longestMs] of [
    ['gives no answer', broken(), 3 * SECOND],
    ['rejects each request', refused(503), 10 * SECOND],
  ] as const)
    test(`that ${how} is tried again after growing pauses of at most ${longestMs} ms`, async (context) => {
      const given = bench(context, [ends(error)]);
      given.nodes.lists = [error];
      await given.start(2 * MINUTE);
      const tries = () => given.nodes.listed.length + given.nodes.watched.length;
      const before = tries();
      await given.time.pass(5 * MINUTE);
      const later = tries() - before;
      const fewest = (5 * MINUTE) / longestMs;
      assert.ok(later >= fewest && later <= 2 * fewest + 1, `${later} tries`);
      assert.ok(before >= 0.4 * fewest && before <= 0.8 * fewest + 5, `${before} tries`);
      assert.deepEqual([given.changes, given.signs()], [[], 0]);
      assert.equal(given.failures.length, tries());
    });

  test('gets no new list after minutes, because the watch continues where it was', async (context) => {
    const given = bench(context, [
      ends(broken(), ...streamed('1'), upsert('a', '5')),
      ...Array.from({ length: 20 }, () => ends(refused(503))),
      ends('quiet', upsert('b', '6')),
    ]);
    assert.deepEqual(await given.start(5 * MINUTE), ['all: ', 'upsert a', 'upsert b']);
    assert.deepEqual(new Set(watchedFrom(given).slice(1)), new Set(['5']));
    assert.deepEqual(given.nodes.listed, []);
    assert.equal(given.failures.length, 21);
  });
});

describe('a watch', () => {
  test('passes changes on in order, without bookmarks', async (context) => {
    const given = bench(context);
    const removed: Change<LiveNode> = { kind: 'delete', object: node('a', '4') };
    given.nodes.watches = [ends('hang', ...streamed('1'), upsert('a', '2'), bookmark('3'), removed)];
    assert.deepEqual(await given.start(), ['all: ', 'upsert a', 'delete a']);
  });

  test('reports each message of the server', async (context) => {
    const given = bench(context, [ends('hang', ...streamed('1', 'a'), bookmark('3'))]);
    await given.start();
    assert.equal(given.signs(), 3);
  });

  test('resumes after the last version without a pause or a list when the server ends it', async (context) => {
    const given = bench(context, [
      ends(undefined, ...streamed('1'), upsert('a', '5')),
      ends(undefined, bookmark('8')),
      ends('hang'),
    ]);
    await given.start();
    assert.deepEqual(watchedFrom(given), ['all', '5', '8']);
    assert.deepEqual(given.failures, []);
  });

  test('has a random timeout of 15 to 30 minutes', async (context) => {
    const given = bench(context, [
      ends(undefined, ...streamed('1')),
      { events: [bookmark('2')], end: undefined, afterMs: 100 },
    ]);
    await given.start(5 * SECOND);
    const seconds = given.nodes.watched.map(({ timeoutSeconds }) => timeoutSeconds);
    assert.ok(seconds.every((each) => Number.isInteger(each) && each >= 900 && each <= 1800));
    assert.ok(new Set(seconds).size > 10);
  });

  test('is always resumed when it breaks rarely with events in between', async (context) => {
    const given = bench(context, [
      ends(undefined, ...streamed('1')),
      { events: [upsert('a', '5')], end: broken(), afterMs: 200 },
    ]);
    await given.start(10 * SECOND);
    assert.equal(watchedFrom(given).filter((from) => from === 'all').length, 1);
    assert.ok(given.nodes.watched.length > 10);
  });

  test('is followed by a new list when its version is too old', async (context) => {
    const given = bench(context, [
      ends(undefined, ...streamed('1', 'a')),
      ends(gone()),
      ends('hang', ...streamed('9', 'b')),
    ]);
    assert.deepEqual(await given.start(SECOND), ['all: a', 'all: b']);
    assert.deepEqual(watchedFrom(given), ['all', '1', 'all']);
    assert.deepEqual(given.failures, []);
  });

  test('causes no hot loop of lists when its version is always too old', async (context) => {
    const given = bench(context, [ends(gone())]);
    await given.start(MINUTE);
    const requests = given.nodes.listed.length + given.nodes.watched.length;
    assert.ok(requests < 30, `${requests} requests`);
  });

  test('causes no hot loop of watches when the server always ends it immediately', async (context) => {
    const given = bench(context, [ends(undefined, ...streamed('1')), ends(undefined)]);
    await given.start(MINUTE);
    // Four watches while the pauses grow to 3 s, and one for each pause after that, with a jitter of half.
    assert.ok(given.nodes.watched.length < 4 + 40, `${given.nodes.watched.length} watches`);
    assert.match(String(given.failures[0]), /ended the watch at once/);
  });

  test('is resumed normally when the server ends it after silence', async (context) => {
    const given = bench(context, [ends(undefined, ...streamed('1')), endsAfter(2 * SECOND), ends('hang')]);
    await given.start(3 * SECOND);
    assert.deepEqual(given.failures, []);
    assert.deepEqual(watchedFrom(given), ['all', '1', '1']);
  });
});

describe('a restored etcd', () => {
  for (const [what, older] of [
    ['event', upsert('b', '99')],
    ['bookmark', bookmark('99')],
  ] as const)
    test(`is detected from an older ${what}, followed by a reported new list`, async (context) => {
      const given = bench(context, [
        ends('hang', ...streamed('100', 'a'), older),
        ends('hang', ...streamed('99', 'b')),
      ]);
      assert.deepEqual(await given.start(SECOND), ['all: a', 'rewound', 'all: b']);
      assert.match(String(given.failures[0]), /older version/);
    });

  test('is detected from a silent watch and an older resource version', async (context) => {
    const given = bench(context);
    given.nodes.lists = [page('99')];
    given.nodes.watches = [
      ends(broken(), ...streamed('100', 'a')),
      ends('hang'),
      ends('quiet', ...streamed('101', 'b')),
    ];
    assert.deepEqual(await given.start(155 * SECOND), ['all: a', 'rewound', 'all: b']);
    assert.deepEqual(watchedFrom(given), ['all', '100', 'all']);
    assert.deepEqual(
      given.nodes.listed.map(({ limit }) => limit),
      [1],
    );
  });

  for (const [what, answer] of [
    ['is only silent', page('100')],
    ['does not answer', broken()],
  ] as const)
    test(`is not assumed where the server ${what}`, async (context) => {
      const given = bench(context);
      given.nodes.lists = [answer];
      given.nodes.watches = [ends('hang', ...streamed('100', 'a')), ends('quiet')];
      assert.deepEqual(await given.start(155 * SECOND), ['all: a']);
      assert.deepEqual(watchedFrom(given), ['all', '100']);
    });
});

describe('the sink learns that', () => {
  const once = ends<LiveNode>(undefined, ...streamed('1'));
  for (const [what, watches, answers] of [
    ['nothing is answered while a streamed list is incomplete', [ends('hang', upsert('a', '5'))], []],
    [
      'a watch is answered by a streamed list, and by an open second',
      [ends('hang', ...streamed('1'))],
      ['watch', 'watch'],
    ],
    [
      'a list is answered after a version that was too old, and the watch later',
      [once, ends(gone()), ends('hang', ...streamed('9'))],
      ['watch', 'list', 'watch'],
    ],
    [
      'versions that are too old now and then are no failure',
      [once, ends(gone()), ends(gone(), ...streamed('9'), bookmark('10')), ends('hang', ...streamed('20'))],
      ['watch', 'list', 'watch', 'list', 'watch'],
    ],
    [
      'a version that is too old at once again is a failure',
      [once, ends(gone()), ends(gone(), ...streamed('9')), ends('hang', ...streamed('20'))],
      ['watch', 'list', 'watch failed', 'list', 'watch'],
    ],
    [
      'a list by pages is answered, and which request failed',
      [ends(refused(422)), ends(broken()), ends('hang')],
      ['list failed', 'list', 'watch failed', 'watch'],
    ],
  ] as const)
    test(what, async (context) => {
      const given = bench(context, watches);
      given.nodes.lists = [refused(503), page('7', 'a')];
      await given.start(10 * SECOND);
      assert.deepEqual(given.answers, answers);
    });
});

describe('a silent server', () => {
  test('is abandoned after 150 s without a bookmark, and requested again', async (context) => {
    const given = bench(context, [ends('hang', ...streamed('1')), ends('hang')]);
    await given.start(149 * SECOND);
    assert.equal(given.nodes.watched.length, 1);
    await given.time.pass(2 * SECOND);
    assert.match(String(given.failures[0]), /silent for 2m30s/);
    assert.equal(given.nodes.watched.length, 2);
  });

  test('that sent no whole list yet is not asked for its version', async (context) => {
    const given = bench(context, [ends('hang', upsert('a', '5')), ends('hang', ...streamed('7', 'b'))]);
    assert.deepEqual(await given.start(155 * SECOND), ['all: b']);
    assert.deepEqual(given.nodes.listed, []);
  });

  test('does not count as silent while bookmarks arrive', async (context) => {
    const given = bench(context);
    await given.start(10 * MINUTE);
    assert.deepEqual(given.failures, []);
    assert.equal(given.nodes.watched.length, 1);
  });
});

describe('an aborted follower', () => {
  for (const [when, watches, passMs] of [
    ['a list by pages', [ends(refused(422))], 0],
    ['a streamed list', [ends('hang', upsert('a', '1'))], 0],
    ['a watch', [ends('quiet', ...streamed('1'))], 0],
    ['a pause between tries', [ends(refused(503))], MINUTE],
  ] as const)
    test(`ends immediately during ${when}, without a failure`, async (context) => {
      const given = bench(context, watches);
      given.nodes.lists = ['hang'];
      await given.start(passMs);
      const before = [given.failures.length, given.changes.length];
      given.abort();
      await given.time.settle();
      assert.equal(given.ended(), true);
      assert.deepEqual([given.failures.length, given.changes.length], before);
    });
});

test('delivers a change again that the sink rejected', async (context) => {
  const given = bench(context, [
    ends('hang', ...streamed('1'), upsert('a', '5')),
    ends('hang', upsert('a', '5'), upsert('b', '6')),
  ]);
  let failing = true;
  given.onChange = () => {
    if (failing) {
      failing = false;
      throw new Error('not now');
    }
  };
  await given.start(SECOND);
  assert.deepEqual(watchedFrom(given), ['all', '1']);
  assert.deepEqual(given.changes, ['all: ', 'upsert a', 'upsert b']);
  assert.equal(given.failures.length, 1);
});

test('retries a change that the sink always rejects after growing pauses, without a hot loop', async (context) => {
  const given = bench(context, [
    ends('hang', ...streamed('1'), upsert('a', '5')),
    ends('hang', upsert('a', '5')),
  ]);
  given.onChange = () => {
    throw new Error('never');
  };
  await given.start(MINUTE);
  assert.ok(given.failures.length > 2 && given.failures.length < 15, `${given.failures.length} failures`);
});

describe('nodes beyond any limit of a cluster', () => {
  const large = (name: string, version: string): LiveNode => ({
    ...node(name, version),
    taints: [{ key: 'a', value: 'x'.repeat(1024 * 1024), effect: 'NoExecute' }],
  });
  const upserts = Array.from({ length: 100 }, (_, index) => ({
    kind: 'upsert' as const,
    object: large(`n${index}`, `${index + 2}`),
  }));
  const errorsOf = ({ failures }: Bench) => failures.map((error) => (error as Error).message);
  const TOO_MANY = /^Its nodes take more than 64 MiB/;

  for (const [where, watch] of [
    ['a streamed list', ends('hang', ...upserts)],
    ['a streamed list under a single name', ends('hang', ...Array(100).fill(upserts[0]))],
    ['pages', ends(refused(400))],
  ] as const)
    test(`are rejected in ${where}, and none is kept`, async (context) => {
      const given = bench(context, [watch]);
      given.nodes.lists = [{ items: [large('n', '1')], resourceVersion: '1', continue: 'more' }];
      assert.deepEqual(await given.start(), []);
      assert.match(errorsOf(given)[0] ?? '', TOO_MANY);
      assert.ok(given.nodes.listed.length < 100);
    });

  const [first, more] = [upserts.slice(0, 40), upserts.slice(40)];
  for (const [list, watches] of [
    ['a streamed list', [ends('hang', ...first, initialEnd('41'), ...more)]],
    ['a list by pages', [ends(refused(400)), ends('hang', ...more)]],
  ] as const)
    test(`are rejected in a watch, and known nodes stay and count, after ${list}`, async (context) => {
      const given = bench(context, watches);
      given.nodes.lists = [{ items: first.map(({ object }) => object), resourceVersion: '41' }];
      await given.start();
      assert.match(given.changes[0] ?? '', /^all: n0 .* n39$/);
      assert.ok(given.changes.length > 20 && given.changes.length < 25, `${given.changes.length}`);
      assert.match(errorsOf(given)[0] ?? '', TOO_MANY);
    });

  const same = upserts[0]?.object.name ?? nodeName('n0');
  for (const [what, changes] of [
    ['few exist at a time', upserts.flatMap((each) => [each, { ...each, kind: 'delete' as const }])],
    [
      'the same node changes repeatedly',
      upserts.map((each) => ({ ...each, object: { ...each.object, name: same } })),
    ],
  ] as const)
    test(`are accepted where ${what}`, async (context) => {
      const given = bench(context, [ends('hang', ...streamed('1', 'a'), ...changes)]);
      await given.start();
      assert.deepEqual([given.changes.length, errorsOf(given)], [changes.length + 1, []]);
    });
});
