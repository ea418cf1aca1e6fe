import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { chosenClusters } from '#functions/local/chosen-clusters.ts';
import { nodeName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { json, scriptedServer } from '../kubernetes/scripted-server.ts';

/** A kubeconfig that the test writes; `a` leads to `server`, unless it is to name another cluster. */
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

test('what waiting does not mend is refused at once, with what there is', (t) => {
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

test('a context that is named twice is one cluster', (t) => {
  const { choice } = kubeconfig(t, 'http://127.0.0.1:1');
  const names = chosenClusters({ ...choice, contexts: ['a', 'a'] }, 'test').map(({ name }) => name);
  assert.deepEqual(names, ['a']);
});

test('a context that is broken is read again, and reaches its cluster once it is repaired', async (t) => {
  const { host } = await scriptedServer(
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
});
