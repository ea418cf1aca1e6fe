import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EvictionsFailedError, evictNode, LOOK_MAX_AGE_MS } from '#functions/evict/evict-node.ts';
import { UnknownClusterError } from '#shared/clusters/cluster-access.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { StoreError } from '#shared/store/store.ts';
import { TimerError } from '#shared/timers/timers.ts';
import { at, nodeDelta, pod, ref, tolerating } from '#test/unit/eviction/builders.ts';
import { liveNode, livePod } from '#test/unit/watch-relay/live-objects.ts';
import {
  deletedFrom,
  type EvictBench,
  evictBench,
  heard,
  podsNamed,
  serverError,
  statesIn,
} from './evict-bench.ts';

/** A bench on which these pods are due, and there. */
const due = (...pods: readonly LivePod[]): Promise<EvictBench> =>
  heard([nodeDelta(1, { pods: pods.map(({ uid }) => pod(uid)) })], pods);

const forever = [tolerating('a')];

/** The requests made, in order. */
function requestsOf({ cluster }: EvictBench): string[] {
  const requests: string[] = [];
  cluster.beforeRequest = (verb) => {
    requests.push(verb);
  };
  return requests;
}

/** Makes each request of a kind fail, as long as `times` lasts. */
function failing(
  { cluster }: EvictBench,
  verb: string,
  error: Error,
  times = Number.POSITIVE_INFINITY,
): void {
  let left = times;
  cluster.beforeRequest = (asked) => {
    if (asked === verb && left-- > 0) throw error;
  };
}

describe('a due pod', () => {
  test('is marked, deleted by its UID, recorded, told and counted', async () => {
    const bench = await due(livePod());
    await bench.clock.advanceTo(at(62));
    const requests = requestsOf(bench);
    await evictNode(ref, bench);
    assert.deepEqual(requests, ['get', 'list', 'patch', 'delete', 'create']);
    assert.deepEqual(deletedFrom(bench), ['u1']);
    assert.equal(bench.cluster.deletions[0]?.meant, 'u1');
    assert.deepEqual(await statesIn(bench), { u1: 'done' });
    assert.deepEqual(
      bench.cluster.events.map(({ message, type }) => `${type} ${message}`),
      ['Normal Marking for deletion Pod default/pod-u1'],
    );
    assert.deepEqual(bench.lateness, [2]);
  });

  test('is marked once, however often its deletion is tried', async () => {
    const bench = await due(livePod());
    failing(bench, 'delete', serverError(500), 1);
    await assert.rejects(evictNode(ref, bench), EvictionsFailedError);
    const requests = requestsOf(bench);
    await evictNode(ref, bench);
    assert.deepEqual(requests, ['get', 'list', 'delete', 'create']);
  });

  test('is told of once, and only when it went', async () => {
    const bench = await due(livePod());
    failing(bench, 'delete', serverError(503), 2);
    await assert.rejects(evictNode(ref, bench), EvictionsFailedError);
    await assert.rejects(evictNode(ref, bench), EvictionsFailedError);
    assert.deepEqual(bench.cluster.events, []);
    await evictNode(ref, bench);
    await evictNode(ref, bench);
    assert.equal(bench.cluster.events.length, 1);
    assert.deepEqual(deletedFrom(bench), ['u1']);
  });

  test('goes although its Event cannot be posted', async () => {
    const bench = await due(livePod());
    failing(bench, 'create', serverError(500));
    await evictNode(ref, bench);
    assert.deepEqual(await statesIn(bench), { u1: 'done' });
    assert.ok(bench.log.lines.some(({ event }) => event === 'event.lost'));
  });

  test('that is many is listed in one request', async () => {
    const bench = await due(...podsNamed(40));
    const requests = requestsOf(bench);
    await evictNode(ref, bench);
    assert.equal(requests.filter((verb) => verb === 'get').length, 1);
    assert.equal(requests.filter((verb) => verb === 'list').length, 1);
    assert.equal(deletedFrom(bench).length, 40);
  });
});

test('nothing due costs no request', async () => {
  const bench = await due(livePod());
  const requests = requestsOf(bench);
  await evictNode({ ...ref, node: nodeName('n2') }, bench);
  assert.deepEqual(requests, []);
});

test('what is not due yet stays', async () => {
  const bench = await heard(
    [nodeDelta(1, { pods: [pod('u1'), pod('u2', { tolerations: [tolerating('a', 61)] })] })],
    [livePod('u1'), livePod('u2', { tolerations: [tolerating('a', 61)] })],
  );
  await evictNode(ref, bench);
  assert.deepEqual(await statesIn(bench), { u1: 'done', u2: 'scheduled' });
});

describe('what live state contradicts is not executed:', () => {
  test('the taint is gone', async () => {
    const bench = await due(livePod());
    bench.cluster.putNode(liveNode());
    await evictNode(ref, bench);
    assert.deepEqual(deletedFrom(bench), []);
    assert.deepEqual(await statesIn(bench), { u1: 'cancelled' });
    assert.deepEqual(
      bench.cluster.events.map(({ message }) => message),
      ['Cancelling deletion of Pod default/pod-u1'],
    );
    assert.equal(
      bench.log.lines.find(({ event }) => event === 'eviction.cancelled')?.fields['reason'],
      'taint-removed',
    );
  });

  test('the pod tolerates the taint now', async () => {
    const bench = await due(livePod('u1', { tolerations: forever }));
    await evictNode(ref, bench);
    assert.deepEqual(await statesIn(bench), { u1: 'cancelled' });
  });

  test('the pod tolerates the taint for longer now', async () => {
    const bench = await due(livePod('u1', { tolerations: [tolerating('a', 90)] }));
    await evictNode(ref, bench);
    assert.deepEqual(await statesIn(bench), { u1: 'scheduled' });
    assert.deepEqual(bench.armed, [at(90)]);
    await bench.clock.advanceTo(at(90));
    await evictNode(ref, bench);
    assert.deepEqual(await statesIn(bench), { u1: 'done' });
  });

  test('what a newer delta changed meanwhile is left to it', async () => {
    const bench = await due(livePod('u1', { tolerations: forever }));
    const { cluster, store } = bench;
    const getNode = cluster.getNode.bind(cluster);
    cluster.getNode = async (name) => {
      const { revision, scheduled } = await store.load(ref, at(60));
      const newer = [...scheduled.values()].map((record) => ({
        ...record,
        version: { epoch: 1, sequence: 9 },
      }));
      await store.commit(ref, revision, { schedule: newer, end: [], live: true }, at(60));
      return getNode(name);
    };
    await evictNode(ref, bench);
    assert.deepEqual(await statesIn(bench), { u1: 'scheduled' });
    assert.deepEqual(bench.cluster.events, []);
  });
});

describe('a put-off pod is never left without a timer:', () => {
  const putOff = () => due(livePod('u1', { tolerations: [tolerating('a', 90)] }));

  test('its timer is armed before its record moves', async () => {
    const bench = await putOff();
    bench.store.conflicts = Number.POSITIVE_INFINITY;
    await assert.rejects(evictNode(ref, bench));
    assert.deepEqual(bench.armed, [at(90)]);
  });

  test('its record does not move when no timer can be armed', async () => {
    const bench = await putOff();
    bench.timerOutages = 1;
    await assert.rejects(evictNode(ref, bench), TimerError);
    await evictNode(ref, bench);
    assert.deepEqual(bench.armed, [at(90)]);
  });
});

describe('a pod that is gone already is a success:', () => {
  const goneRows: readonly (readonly [says: string, change: (bench: EvictBench) => void])[] = [
    ['before the look', ({ cluster }) => cluster.removePod(livePod())],
    [
      'replaced under its name before the look',
      ({ cluster }) => cluster.putPod(livePod('u2', { name: 'pod-u1' })),
    ],
    [
      'between look and patch',
      ({ cluster }) => {
        cluster.beforeRequest = (verb) => verb === 'patch' && cluster.removePod(livePod());
      },
    ],
    [
      'replaced between look and patch',
      ({ cluster }) => {
        cluster.beforeRequest = (verb) =>
          verb === 'patch' && cluster.putPod(livePod('u2', { name: 'pod-u1' }));
      },
    ],
    [
      'between patch and deletion',
      ({ cluster }) => {
        cluster.beforeRequest = (verb) => verb === 'delete' && cluster.removePod(livePod());
      },
    ],
    [
      'replaced between patch and deletion',
      ({ cluster }) => {
        cluster.beforeRequest = (verb) =>
          verb === 'delete' && cluster.putPod(livePod('u2', { name: 'pod-u1' }));
      },
    ],
  ];
  for (const [says, change] of goneRows) {
    test(says, async () => {
      const bench = await due(livePod());
      change(bench);
      await evictNode(ref, bench);
      assert.deepEqual(await statesIn(bench), { u1: 'gone' });
      assert.deepEqual(deletedFrom(bench), []);
      assert.deepEqual(bench.cluster.events, []);
      assert.deepEqual(bench.lateness, []);
    });
  }

  test('terminating after an eviction whose end nobody recorded', async () => {
    const bench = await due(livePod('u1', { terminating: true, disrupted: true }));
    await evictNode(ref, bench);
    assert.deepEqual(await statesIn(bench), { u1: 'done' });
    assert.deepEqual(deletedFrom(bench), []);
  });
});

describe('a refusal', () => {
  test('409 that is not the UID is tried again, not taken for gone', async () => {
    const bench = await due(livePod());
    failing(bench, 'patch', serverError(409), 1);
    await assert.rejects(evictNode(ref, bench), EvictionsFailedError);
    assert.deepEqual(await statesIn(bench), { u1: 'scheduled' });
    await evictNode(ref, bench);
    assert.deepEqual(await statesIn(bench), { u1: 'done' });
  });

  test('of the look is the whole pass’s', async () => {
    for (const error of [serverError(500), serverError(0), serverError(401)]) {
      const bench = await due(livePod());
      failing(bench, 'get', error, 1);
      await assert.rejects(evictNode(ref, bench), error);
      assert.deepEqual(await statesIn(bench), { u1: 'scheduled' });
    }
  });

  test('names the pods that are left and the longest wait that was asked for', async () => {
    const bench = await due(...podsNamed(5));
    let asked = 0;
    bench.cluster.beforeRequest = (verb) => {
      if (verb === 'delete' && asked++ < 3) throw serverError(429, asked * 10);
    };
    await assert.rejects(evictNode(ref, bench), (error) => {
      assert.ok(error instanceof EvictionsFailedError);
      assert.equal(error.retryAfterSeconds, 30);
      assert.equal(error.pods.length, 3);
      assert.match(error.message, /^3 of 5 due pods are not evicted yet: the server answered 429/);
      return true;
    });
    const states = Object.values(await statesIn(bench)).sort();
    assert.deepEqual(states, ['done', 'done', 'scheduled', 'scheduled', 'scheduled']);
  });

  test('of many pods spares the server the rest', async () => {
    const bench = await due(...podsNamed(200));
    let deletions = 0;
    bench.cluster.beforeRequest = (verb) => {
      if (verb !== 'delete') return;
      deletions += 1;
      throw serverError(500);
    };
    await assert.rejects(evictNode(ref, bench), (error) => {
      assert.ok(error instanceof EvictionsFailedError);
      assert.equal(error.pods.length, 200);
      return true;
    });
    assert.ok(deletions <= 40, `${deletions} deletions tried`);
  });

  test('of some pods for ever does not keep the others from going', async () => {
    const bench = await due(...podsNamed(50));
    const { cluster } = bench;
    const deletePod = cluster.deletePod.bind(cluster);
    cluster.deletePod = async (given, preconditions) => {
      if (Number(preconditions.uid.slice(1)) <= 20) throw serverError(403);
      await deletePod(given, preconditions);
    };
    for (let passes = 0; passes < 300 && cluster.deletions.length < 30; passes++) {
      await evictNode(ref, bench).catch(() => undefined);
    }
    assert.equal(deletedFrom(bench).length, 30);
  });

  test('of one pod does not keep the outcome of the others from being recorded', async () => {
    const bench = await due(...podsNamed(3));
    failing(bench, 'delete', serverError(500), 1);
    await assert.rejects(evictNode(ref, bench), EvictionsFailedError);
    assert.equal(Object.values(await statesIn(bench)).filter((state) => state === 'done').length, 2);
    assert.equal(bench.cluster.events.length, 2);
  });
});

describe('a long pass', () => {
  test('looks again, and spares the pods whose taint goes in the middle', async () => {
    const bench = await due(...podsNamed(200));
    const { cluster, clock } = bench;
    cluster.onDeleted = () => {
      if (cluster.deletions.length !== 20) return;
      cluster.putNode(liveNode());
      void clock.advanceTo(clock.now() + LOOK_MAX_AGE_MS + 1);
    };
    await evictNode(ref, bench);
    const states = Object.values(await statesIn(bench));
    const done = states.filter((state) => state === 'done').length;
    // Those already on their way when the taint went are as many as go at a time.
    assert.ok(done >= 20 && done <= 20 + 32, `${done} were deleted`);
    assert.equal(states.filter((state) => state === 'cancelled').length, 200 - done);
    assert.equal(cluster.deletions.length, done);
  });

  test('looks once for all that wait for it', async () => {
    const bench = await due(...podsNamed(30));
    let gets = 0;
    bench.cluster.beforeRequest = (verb) => {
      if (verb === 'get') gets += 1;
      if (verb === 'list') void bench.clock.advanceTo(at(61));
    };
    await evictNode(ref, bench);
    assert.equal(gets, 2);
    assert.equal(deletedFrom(bench).length, 30);
  });

  test('whose second look fails leaves the rest for the next one', async () => {
    const bench = await due(...podsNamed(30));
    let gets = 0;
    bench.cluster.beforeRequest = (verb) => {
      if (verb === 'get' && ++gets > 1) throw serverError(0);
      if (verb === 'list') void bench.clock.advanceTo(at(61));
    };
    await assert.rejects(evictNode(ref, bench), EvictionsFailedError);
    assert.deepEqual(deletedFrom(bench), []);
    bench.cluster.beforeRequest = () => undefined;
    await evictNode(ref, bench);
    assert.equal(deletedFrom(bench).length, 30);
  });
});

describe('when the end of a deletion cannot be recorded', () => {
  test('the pod is told of all the same, and recorded by the next pass, without a second deletion', async () => {
    const bench = await due(livePod());
    const end = bench.store.end.bind(bench.store);
    bench.store.end = () => Promise.reject(new StoreError('the table is away'));
    await assert.rejects(evictNode(ref, bench), StoreError);
    assert.equal(bench.cluster.events.length, 1);
    bench.store.end = end;
    await evictNode(ref, bench);
    assert.deepEqual(await statesIn(bench), { u1: 'gone' });
    assert.deepEqual(deletedFrom(bench), ['u1']);
  });

  test('what went is recorded although something unforeseen ended the pass', async () => {
    const bench = await due(...podsNamed(2));
    let asked = 0;
    bench.cluster.beforeRequest = (verb) => {
      if (verb === 'delete' && ++asked === 2) throw new TypeError('unforeseen');
    };
    await assert.rejects(evictNode(ref, bench), TypeError);
    assert.deepEqual(Object.values(await statesIn(bench)).sort(), ['done', 'scheduled']);
  });
});

test('a cluster that nobody manages, and a table that is away, are the caller’s to retry', async () => {
  const bench = await due(livePod());
  bench.store.outages = 1;
  await assert.rejects(evictNode(ref, bench), StoreError);
  const elsewhere = evictBench();
  const other = { ...ref, cluster: clusterName('c2') };
  const { scheduled } = await bench.store.load(ref, at(0));
  const change = { schedule: [...scheduled.values()], end: [], live: true };
  await elsewhere.store.commit(other, 0, change, at(0));
  await assert.rejects(evictNode(other, elsewhere), UnknownClusterError);
});

test('a node that is gone keeps its last taints for its pods', async () => {
  const bench = await due(livePod());
  bench.cluster.removeNode(ref.node);
  await evictNode(ref, bench);
  assert.deepEqual(deletedFrom(bench), ['u1']);
});

test('two passes at once do no harm', async () => {
  const bench = await due(...podsNamed(10));
  await Promise.all([evictNode(ref, bench), evictNode(ref, bench)]);
  assert.equal(deletedFrom(bench).length, 10);
  assert.ok(Object.values(await statesIn(bench)).every((state) => state === 'done' || state === 'gone'));
  assert.equal(bench.cluster.events.length, 10);
});
