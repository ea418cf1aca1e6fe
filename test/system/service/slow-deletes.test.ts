import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock } from '#shared/time/clock.ts';
import { startSimulatedCluster } from '#simulator/cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import { kubeconfigOf, startProgram } from '../entries/entries.ts';

/** Longer than the time that a request may be delayed before it is sent. */
const SLOW_MS = 400;

/** Starts a cluster behind a load balancer that uses HTTP/1.1, and that forwards the response to a delete late. */
async function slowCluster(context: TestContext, dir: string) {
  const cluster = await startSimulatedCluster({ clock: systemClock, dir: join(dir, 'cluster') });
  context.after(() => cluster.close());
  const kubeconfig = readFileSync(cluster.kubeconfig, 'utf8');
  const [, origin = ''] = /server: (\S+)/.exec(kubeconfig) ?? [];
  const [, token = ''] = /token: (\S+)/.exec(kubeconfig) ?? [];
  /** The pods' paths, once for each request to delete them. */
  const deletes: string[] = [];
  const versions = new Set<string>();
  let cut = 0;
  const proxy = createServer((incoming, answer) => {
    const { method = '', url = '', headers } = incoming;
    versions.add(incoming.httpVersion);
    const isDelete = method === 'DELETE' && url.includes('/pods/');
    if (isDelete) deletes.push(url);
    answer.on('close', () => {
      if (isDelete && !answer.writableFinished) cut += 1;
    });
    const onward = request(
      new URL(url, origin),
      { method, headers: { ...headers, authorization: `Bearer ${token}` }, rejectUnauthorized: false },
      async (found) => {
        if (isDelete) await pause(SLOW_MS);
        answer.writeHead(found.statusCode ?? 502, found.headers);
        found.pipe(answer);
      },
    );
    onward.on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  return { cluster, kubeconfig: await kubeconfigOf(context, proxy), deletes, versions, cuts: () => cut };
}

test('deletes each pod once with a server that takes 400 ms to answer over HTTP/1.1', async (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'slow-deletes-'));
  context.after(() => rmSync(dir, { recursive: true }));
  const { cluster, kubeconfig, deletes, versions, cuts } = await slowCluster(context, dir);
  const service = startProgram(
    context,
    '#functions/service/main.ts',
    [
      ...['--context', 'c', '--kubeconfig', kubeconfig],
      ...['--state-dir', join(dir, 'state'), '--enforce', '--no-console'],
    ],
    {},
  );

  await until('the pods of the simulated cluster run', () => {
    const pods = cluster.pods();
    return pods.length > 0 && pods.every(({ status }) => status === 'Running');
  });
  const doomed = cluster.pods().filter(({ node, name }) => node === 'node-1' && !name.startsWith('logs'));
  assert.ok(doomed.length >= 3);
  cluster.taint('node-1', 'broken=yes:NoExecute');
  await until('all pods that do not tolerate the taint are evicted', () => {
    const left = new Set(cluster.pods().map(({ uid }) => uid));
    return doomed.every(({ uid }) => !left.has(uid));
  });
  await service.stop();

  assert.deepEqual([...versions], ['1.1']);
  assert.equal(cuts(), 0);
  assert.deepEqual(
    deletes.map((path) => path.split('/').at(-1)?.split('?')[0]).sort(),
    doomed.map(({ name }) => name).sort(),
  );
});
