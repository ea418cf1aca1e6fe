import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs, { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runInCluster } from '#functions/service/in-cluster.ts';
import { parseOptions } from '#functions/service/options.ts';
import { ClustersRejectedError } from '#shared/engine/clusters/managed-clusters.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { listening, serverKeys } from '#test/unit/kubernetes/scripted-server.ts';

test('--in-cluster reaches the cluster of the file that --kubeconfig names', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'in-cluster-'));
  t.after(() => rmSync(dir, { recursive: true }));
  /** Writes a kubeconfig with a context `c`, and returns its path and the number of requests to its server. */
  const cluster = async (name: string) => {
    let requests = 0;
    const paths: string[] = [];
    const server = createServer((request, response) => {
      requests += 1;
      paths.push(`${request.url}`);
      response.writeHead(401).end();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => server.close().closeAllConnections());
    const { port } = server.address() as AddressInfo;
    const kubeconfig = {
      clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
      users: [{ name: 'c', user: {} }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
    };
    const file = join(dir, name);
    writeFileSync(file, JSON.stringify(kubeconfig));
    return { file, requests: () => requests, paths };
  };
  const [named, standard] = [await cluster('named'), await cluster('standard')];
  const before = process.env['KUBECONFIG'];
  t.after(() => {
    if (before === undefined) delete process.env['KUBECONFIG'];
    else process.env['KUBECONFIG'] = before;
  });
  process.env['KUBECONFIG'] = standard.file;
  const options = parseOptions(['--in-cluster', '--context', 'c', '--kubeconfig', named.file]);
  const terminal = { log: recordingLog(), print: () => undefined, isToTerminal: false };
  await assert.rejects(runInCluster(options, terminal), ClustersRejectedError);
  assert.deepEqual([named.requests() > 0, standard.requests()], [true, 0]);
  const asksConfigMap = () =>
    named.paths.splice(0).some((path) => path.includes('/namespaces/taintward/configmaps/taintward-policy'));
  assert.equal(asksConfigMap(), true, 'the policy of the cluster');
  const policyFile = join(dir, 'policy.yaml');
  writeFileSync(policyFile, 'mode: observe\n');
  await assert.rejects(runInCluster({ ...options, policyFile }, terminal), ClustersRejectedError);
  assert.equal(asksConfigMap(), false, '--policy precedes it');
});

test('--in-cluster in a pod reaches its cluster, and keeps the state in its namespace', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'in-cluster-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const { key, cert } = await serverKeys();
  const paths: string[] = [];
  const server = https.createServer({ key, cert }, (request, response) => {
    paths.push(`${request.headers.authorization} ${request.url}`);
    response.writeHead(401).end();
  });
  const { port } = await listening(t, server);
  const files: Readonly<Record<string, string>> = {
    'ca.crt': cert,
    token: 'sesame',
    namespace: 'evictions\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  for (const method of ['readFileSync', 'accessSync'] as const) {
    const real = fs[method] as (path: unknown, ...given: unknown[]) => unknown;
    t.mock.method(fs, method, (path: unknown, ...given: unknown[]) =>
      real(`${path}`.replace('/var/run/secrets/kubernetes.io/serviceaccount', dir), ...given),
    );
  }
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  Object.assign(process.env, { KUBERNETES_SERVICE_HOST: 'localhost', KUBERNETES_SERVICE_PORT: `${port}` });
  t.after(() => {
    delete process.env['KUBERNETES_SERVICE_HOST'];
    delete process.env['KUBERNETES_SERVICE_PORT'];
  });
  const terminal = { log: recordingLog(), print: () => undefined, isToTerminal: false };
  await assert.rejects(runInCluster(parseOptions(['--in-cluster']), terminal), ClustersRejectedError);
  assert.ok(
    paths.includes('Bearer sesame /api/v1/namespaces/evictions/configmaps/taintward-policy'),
    `${paths}`,
  );
});
