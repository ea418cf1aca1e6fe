import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Issue } from '#shared/conditions/conditions.ts';
import { serviceViewSchema } from '#shared/operations/fleet/service-view.ts';
import { askSocket, SOCKET_FILE } from '#shared/operations/fleet/state-socket.ts';
import { taintward } from '#test/transcripts/transcript.ts';
import { Account } from './rig/account.ts';
import { fileStage } from './rig/file-stage.ts';
import { CONTEXT } from './rig/stage.ts';
import { until } from './rig/until.ts';

const stage = fileStage('bare');

/** Time within which the service reports lost access to a cluster, and `taintward status` shows it. */
const WITHIN_MS = 30_000;

/**
 * Starts a service under its own account. Its faults are the connection state, resource, and HTTP status that it
 * reports for its cluster.
 */
async function serve(name: string) {
  const { cluster } = stage();
  const account = await Account.create(cluster, name);
  const kubeconfig = await stage().writeKubeconfig(name, cluster.connection, account.token);
  const service = await stage().start({ kubeconfig });
  const faults = async (): Promise<readonly string[]> => {
    const view = serviceViewSchema.parse(await askSocket(join(service.stateDir, SOCKET_FILE), '/service'));
    const all = view.clusters[CONTEXT]?.faults ?? [];
    return all.map(({ type, resource, status }) => `${type} ${resource} ${status}`);
  };
  const logged = (...expected: readonly string[]) =>
    until(
      `it says ${expected.join(', ') || 'nothing'}`,
      async () => `${await faults()}` === `${expected}`,
      WITHIN_MS,
    );
  /** Waits until `taintward status` ends with this code, and shows an issue of one of these types, or none. */
  const shows = (code: number, ...types: readonly Issue['type'][]) =>
    until(
      `status ends with ${code} and shows ${types.join(' or ') || 'no issue'}`,
      async () => {
        const status = await taintward('status', '-o', 'json', '--state-dir', service.stateDir);
        if (status.code !== code) return false;
        const { issues }: { readonly issues: readonly Issue[] } = JSON.parse(status.out);
        return types.length === 0
          ? issues.length === 0
          : issues.some(({ type, remediation }) => types.includes(type) && remediation !== undefined);
      },
      WITHIN_MS,
    );
  return { cluster, account, service, faults, logged, shows };
}

test('reports revoked permissions within 30 s, before and after a taint, and clears the report when they are restored', async (t) => {
  const { cluster, account, logged, faults } = await serve('forbidden');
  assert.deepEqual(await faults(), []);
  const node = await cluster.addNode('forbidden');
  const pod = await cluster.addPod(node, 'forbidden');
  const from = Date.now();
  await account.revoke();
  await logged('list-failing pods 403', 'watch-failing nodes 403');
  t.diagnostic(`told after ${Date.now() - from} ms`);
  // The service still watches nodes, so the taint makes it list the pods.
  await cluster.taint(node, { key: 'x' });
  await logged('list-failing pods 403', 'watch-failing nodes 403');
  assert.equal(pod.evictedAt, undefined);
  await account.grant();
  await logged();
  await until('it is evicted', () => pod.evictedAt);
});

test('reports a deleted account, whose token is rejected, within 30 s', async (t) => {
  const { account, logged } = await serve('leaver');
  const from = Date.now();
  await account.delete();
  await logged('list-failing pods 401', 'watch-failing nodes 401');
  t.diagnostic(`told after ${Date.now() - from} ms`);
});

test('shows revoked permissions in status within 30 s with exit code 2, until they are restored', async (t) => {
  const { account, shows } = await serve('shown');
  await shows(0);
  const from = Date.now();
  await account.revoke();
  await shows(2, 'list-failing', 'watch-failing');
  t.diagnostic(`shown after ${Date.now() - from} ms`);
  await account.grant();
  await shows(0);
});
