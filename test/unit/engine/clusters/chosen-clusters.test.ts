import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { chosenCluster, chosenClusters } from '#shared/engine/clusters/chosen-clusters.ts';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { reachedBy } from '#shared/operations/fleet/reached-by.ts';
import { systemClock } from '#shared/time/clock.ts';
import { json, scriptedServer } from '../../kubernetes/scripted-server.ts';
import { livePod } from '../watch/live-objects.ts';

/** Writes a kubeconfig whose context `a` leads to `server`, unless `write` names another cluster. */
function kubeconfig(t: TestContext, server: string) {
  const dir = mkdtempSync(join(tmpdir(), 'chosen-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, 'config');
  const write = (cluster: string) =>
    writeFileSync(
      path,
      JSON.stringify({
        clusters: [{ name: 'c', cluster: { server } }],
        users: [{ name: 'u', user: {} }],
        contexts: [
          { name: 'a', context: { cluster, user: 'u' } },
          { name: 'bad#name', context: { cluster, user: 'u' } },
        ],
      }),
    );
  write('c');
  return { path, write, choice: { contexts: ['a'], kubeconfig: path } };
}

test('rejects immediately a choice that needs a correction, and lists the contexts', (t) => {
  const { path, choice } = kubeconfig(t, 'http://127.0.0.1:1');
  assert.throws(() => chosenClusters({ ...choice, contexts: ['a', 'nowhere'] }, 'test'), {
    name: 'KubeconfigError',
    message: `The kubeconfig ${path} has no context "nowhere": it has bad#name, a.`,
  });
  assert.throws(() => chosenClusters({ ...choice, contexts: ['bad#name'] }, 'test'), /must not contain #/);
  assert.throws(
    () => chosenClusters({ ...choice, kubeconfig: `${path}.not` }, 'test'),
    /cannot be read \(ENOENT\)/,
  );
});

test('returns the absolute path of the kubeconfig for other processes', () => {
  const [[name, reached] = []] = reachedBy({ contexts: ['a'], kubeconfig: 'some/config' });
  assert.deepEqual([name, reached], ['a', { context: 'a', kubeconfig: resolve('some/config') }]);
  assert.deepEqual([...reachedBy({ contexts: ['a'], kubeconfig: undefined }).values()], [{ context: 'a' }]);
});

test('forgets rejected credentials at their source', () => {
  const forgotten: string[] = [];
  let lasting: Connection | undefined;
  const connect = (): Connection => ({
    host: 'there',
    requestOptions: async () => ({ server: new URL('https://there'), headers: {} }),
    forgetCredentials: () => void forgotten.push('a'),
  });
  const cluster = chosenCluster('a', connect, (connection) => {
    lasting = connection;
    return new RestApi(connection, systemClock, 'test');
  });
  cluster.readAccess();
  lasting?.forgetCredentials?.();
  assert.deepEqual(forgotten, ['a']);
  cluster.api.close();
});

test('does not reach a cluster by its former access when its access is broken', async (t) => {
  const answers: (() => Connection)[] = [
    () => ({
      host: 'there',
      requestOptions: async () => ({ server: new URL('https://there'), headers: {} }),
    }),
  ];
  const broken = () => {
    throw new KubeconfigError('The context is gone.');
  };
  let lasting: Connection | undefined;
  const cluster = chosenCluster(
    'a',
    () => (answers.pop() ?? broken)(),
    (connection) => {
      lasting = connection;
      return new RestApi(connection, systemClock, 'test');
    },
  );
  t.after(() => cluster.api.close());
  cluster.readAccess();
  assert.throws(() => cluster.readAccess(), { name: 'KubeconfigError' });
  await assert.rejects(async () => lasting?.requestOptions(), { name: 'KubeconfigError' });
});

test('counts a context that is named twice as one cluster', (t) => {
  const { choice } = kubeconfig(t, 'http://127.0.0.1:1');
  const names = chosenClusters({ ...choice, contexts: ['a', 'a'] }, 'test').map(({ name }) => name);
  assert.deepEqual(names, ['a']);
});

test('reads a broken context again, and reaches its cluster after a repair, under the name of the installation', async (t) => {
  const { host, requests } = await scriptedServer(
    t,
    json({ metadata: { name: 'n1', uid: 'u', resourceVersion: '1' } }),
  );
  const { choice, write } = kubeconfig(t, `http://${host}`);
  write('elsewhere');
  const [cluster] = chosenClusters(choice, 'test');
  assert.ok(cluster);
  t.after(() => cluster.api.close());
  assert.throws(() => cluster.readAccess(), /names the cluster "elsewhere", which is not there/);
  await assert.rejects(cluster.api.getNode(nodeName('n1')), ApiError);
  write('c');
  cluster.readAccess();
  assert.equal((await cluster.api.getNode(nodeName('n1')))?.name, 'n1');
  await cluster.api.markDisrupted(livePod(), podUid('u1'), 0).catch(() => undefined);
  assert.match(requests.at(-1)?.url ?? '', /fieldManager=taintward-test/);
});
