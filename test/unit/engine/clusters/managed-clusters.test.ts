import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  type ChosenCluster,
  ClustersRejectedError,
  LOG_AGAIN_MS,
  ManagedClusters,
  START_CHECK_MS,
} from '#shared/engine/clusters/managed-clusters.ts';
import { type ClusterUids, clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { NEEDED_PERMISSIONS } from '#shared/kubernetes/permissions.ts';
import { StoreError } from '#shared/state/store.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { drivenClock, driveTimers } from '#test/world/driven-timers.ts';

const MINUTE_MS = 60_000;
/** A time by which pauses, which double from 2 s, reach their maximum of one minute. */
const GROWN_MS = 3 * MINUTE_MS;

const EXPIRED = new ApiError('the credentials were rejected: renew them.', 401, 'Unauthorized');
const DENIED = new ApiError('it is forbidden.', 403, 'Forbidden');
const UNREACHABLE = new ApiError('the connection was refused.', 0);
const NO_LOGIN = new ApiError('the plugin failed.', 0, '', undefined, {
  cause: new KubeconfigError('The plugin failed: log in.'),
});
const BROKEN = new KubeconfigError(
  'Context "b" names the cluster "x", which is not there: correct the context.',
);

const permissions = async () => NEEDED_PERMISSIONS;

/** Returns a cluster that the test breaks and repairs. */
function scripted(name: string, trouble?: Error | 'silent' | 'no rights') {
  const cluster = {
    trouble,
    tries: 0,
    denied: false,
    identity: { system: `system of ${name}`, nodes: [] } as ClusterUids,
    name: clusterName(name),
    readAccess: () => {
      cluster.tries += 1;
      if (cluster.trouble instanceof KubeconfigError) throw cluster.trouble;
    },
    api: {
      host: `${name}:6443`,
      allowed: ({ verb }: { readonly verb: string }) => {
        if (cluster.trouble === 'silent') return new Promise<boolean>(() => undefined);
        if (cluster.trouble instanceof Error) return Promise.reject(cluster.trouble);
        return Promise.resolve(cluster.trouble !== 'no rights' || verb !== 'delete');
      },
      getNode: async (): Promise<undefined> => {
        if (cluster.denied) throw DENIED;
      },
      uids: async (): Promise<ClusterUids> => cluster.identity,
      close: () => undefined,
    },
  };
  return cluster;
}

type Scripted = ReturnType<typeof scripted>;

/** Returns the clusters with the type that the code under test expects; the tests need no other fields. */
const chosen = (clusters: readonly Scripted[]) => clusters as readonly unknown[] as readonly ChosenCluster[];

/** Admits the clusters and records their names. The test drives the time. */
async function manage(t: TestContext, ...scriptedClusters: readonly Scripted[]) {
  const time = driveTimers(t);
  const log = recordingLog();
  const stopping = new AbortController();
  const taken: string[] = [];
  let isOpen = false;
  const opening = ManagedClusters.open(chosen(scriptedClusters), {
    clock: drivenClock,
    log,
    permissions: permissions,
  }).finally(() => {
    isOpen = true;
  });
  await time.settle();
  // A start waits for clusters that do not answer, to compare them.
  if (!isOpen) await time.pass(START_CHECK_MS);
  const clusters = await opening;
  const refused: string[] = [];
  clusters.admit(
    (name) => taken.push(name),
    stopping.signal,
    (name) => refused.push(name),
  );
  await time.settle();
  const complaints = () => log.lines.map(({ event, fields }) => `${event} ${fields['cluster']}`);
  t.after(() => {
    stopping.abort();
    clusters.close();
  });
  return { time, log, clusters, taken, refused, complaints, stopping };
}

describe('a cluster that cannot be managed', () => {
  for (const [what, trouble, state] of [
    ['whose credentials are refused', EXPIRED, 'access-denied'],
    ['whose context is broken', BROKEN, 'access-denied'],
    ['whose credentials cannot be had', NO_LOGIN, 'access-denied'],
    ['that refuses rights', 'no rights', 'access-denied'],
    ['that does not answer', UNREACHABLE, 'disconnected'],
  ] as const) {
    test(`${what} delays no other cluster, and is admitted after a repair`, async (t) => {
      const [a, b] = [scripted('a'), scripted('b', trouble)];
      const { time, clusters, taken, refused, complaints } = await manage(t, a, b);
      assert.deepEqual(taken, ['a']);
      const [fault] = clusters.faults.get(b.name) ?? [];
      assert.deepEqual([fault?.type, fault?.since], ['list-failing', 0]);
      assert.equal(fault?.error, clusters.troubles.get(b.name));
      assert.deepEqual(
        [...clusters.states].map(([name, { kind }]) => [name, kind]),
        [['b', state]],
      );
      assert.deepEqual(complaints(), [
        `cluster.${state === 'access-denied' ? 'access-denied' : 'unreachable'} b`,
      ]);
      await time.pass(GROWN_MS);
      assert.deepEqual(taken, ['a']);
      assert.equal(clusters.faults.get(b.name)?.[0]?.since, 0);
      b.trouble = undefined;
      await time.pass(MINUTE_MS);
      assert.deepEqual(taken, ['a', 'b']);
      assert.deepEqual([...clusters.states], []);
      assert.deepEqual([...clusters.faults, ...clusters.troubles], []);
      assert.deepEqual(refused, ['b'], 'however often it was tried');
    });
  }

  test('is disconnected since the first request without an answer', async (t) => {
    const { time, clusters } = await manage(t, scripted('a'), scripted('b', UNREACHABLE));
    const [state] = clusters.states.values();
    assert.ok(state?.kind === 'disconnected');
    await time.pass(MINUTE_MS);
    assert.deepEqual([...clusters.states.values()], [state]);
  });

  test('is tried after pauses that grow to a minute, or to ten seconds when it only does not answer', async (t) => {
    const [refused, away] = [scripted('refused', EXPIRED), scripted('away', UNREACHABLE)];
    const { time } = await manage(t, scripted('a'), refused, away);
    const triesWithin = async (ms: number) => {
      const before = [refused.tries, away.tries] as const;
      await time.pass(ms);
      return [refused.tries - before[0], away.tries - before[1]] as const;
    };
    const [early, earlyAway] = await triesWithin(10_000);
    assert.ok(early >= 2 && earlyAway >= 3, `${early}, ${earlyAway} tries within the first 10 s`);
    await time.pass(GROWN_MS);
    const [late, lateAway] = await triesWithin(10 * MINUTE_MS);
    assert.ok(late >= 9 && late <= 21, `${late} tries in ten minutes`);
    assert.ok(lateAway >= 59 && lateAway <= 121, `${lateAway} tries in ten minutes`);
  });

  test('is logged rarely, and immediately when the reason changes', async (t) => {
    const b = scripted('b', EXPIRED);
    const { time, log, complaints } = await manage(t, scripted('a'), b);
    await time.pass(LOG_AGAIN_MS - MINUTE_MS);
    assert.equal(complaints().length, 1);
    await time.pass(3 * MINUTE_MS);
    assert.equal(complaints().length, 2);
    b.trouble = 'no rights';
    await time.pass(MINUTE_MS);
    assert.equal(complaints().length, 3);
    assert.match(String(log.lines.at(-1)?.fields['error']), /b:6443 lack permissions: .* delete pods/);
  });

  test('is awaited for seconds only, and not removed, while it does not answer', async (t) => {
    const b = scripted('b', 'silent');
    const { clusters, taken } = await manage(t, scripted('a'), b);
    assert.deepEqual(taken, ['a']);
    assert.deepEqual([...clusters.states], [['b', { kind: 'syncing' }]]);
    assert.deepEqual([...clusters.apis.keys()], ['a', 'b']);
  });

  test('is not tried again once the service stops', async (t) => {
    const b = scripted('b', EXPIRED);
    const { time, taken, stopping } = await manage(t, scripted('a'), b);
    stopping.abort();
    b.trouble = undefined;
    const { tries } = b;
    await time.pass(GROWN_MS);
    assert.deepEqual([b.tries, taken], [tries, ['a']]);
  });
});

describe('the start', () => {
  const open = (...clusters: readonly Scripted[]) =>
    ManagedClusters.open(chosen(clusters), {
      clock: drivenClock,
      log: recordingLog(),
      permissions: permissions,
    });

  test('fails when every cluster needs a repair, with a line for each reason', async () => {
    const twins = [scripted('b', BROKEN), scripted('d', BROKEN)];
    await assert.rejects(open(scripted('a', 'no rights'), ...twins, scripted('c', EXPIRED)), {
      name: ClustersRejectedError.name,
      message: [
        'cluster a: The credentials for a:6443 lack permissions: grant them, in all namespaces unless one is named: delete pods.',
        BROKEN.message,
        'cluster c: the credentials were rejected: renew them.',
      ].join('\n'),
    });
  });

  test('fails when two contexts are one cluster, and names both', async () => {
    const [a, b, c] = [scripted('a'), scripted('b'), scripted('c', EXPIRED)];
    const message = 'Contexts a and b are the same cluster: name only one of them.';
    for (const [one, other] of [
      [
        { system: 's', nodes: [] },
        { system: 's', nodes: ['n'] },
      ],
      // The credentials of one context may not read kube-system.
      [{ system: 's', nodes: ['n1', 'n2'] }, { nodes: ['n2', 'n3'] }],
      [{ nodes: ['n1'] }, { nodes: ['n1'] }],
    ] satisfies [ClusterUids, ClusterUids][]) {
      Object.assign(a, { identity: one });
      Object.assign(b, { identity: other });
      await assert.rejects(open(c, a, b), { name: ClustersRejectedError.name, message });
    }
    Object.assign(a, { identity: { system: 's', nodes: ['n1'] } });
    Object.assign(b, { identity: { system: 'other', nodes: ['n1'] } });
    (await open(a, b)).close();
  });

  test('continues when a cluster may become reachable by itself, and closes all', async (t) => {
    const all = [scripted('a', EXPIRED), scripted('b', UNREACHABLE)];
    const closes = all.map(({ api }) => t.mock.method(api, 'close'));
    (await open(...all)).close();
    assert.deepEqual(
      closes.map(({ mock }) => mock.callCount()),
      [1, 1],
    );
  });
});

test('admits a cluster whose credentials may not ask for their permissions with a warning, if they can read', async (t) => {
  const [a, b] = [scripted('a', DENIED), scripted('b', DENIED)];
  b.denied = true;
  const { taken, complaints } = await manage(t, a, b);
  assert.deepEqual(taken, ['a']);
  assert.deepEqual(complaints(), ['cluster.permissions-unverified a', 'cluster.access-denied b']);
});

test('requires only the permissions that the rules of a cluster need', async (t) => {
  const [a, b] = [scripted('a', 'no rights'), scripted('b', 'no rights')];
  const open = (permissions: readonly Permission[], cluster: Scripted) =>
    ManagedClusters.open(chosen([cluster]), {
      clock: drivenClock,
      log: recordingLog(),
      permissions: async () => permissions,
    });
  const uids = t.mock.method(a.api, 'uids');
  (await open([{ verb: 'get', resource: 'pods' }], a)).close();
  assert.equal(uids.mock.callCount(), 0, 'a single cluster has no twin');
  await assert.rejects(open([{ verb: 'delete', resource: 'pods' }], b), ClustersRejectedError);
});

test('requires only reading while the rules of a cluster cannot be read', async () => {
  const open = (cluster: Scripted) =>
    ManagedClusters.open(chosen([cluster]), {
      clock: drivenClock,
      log: recordingLog(),
      permissions: () => Promise.reject(new StoreError('The store does not answer.')),
    });
  (await open(scripted('a', 'no rights'))).close();
  await assert.rejects(open(scripted('b', EXPIRED)), ClustersRejectedError);
});
