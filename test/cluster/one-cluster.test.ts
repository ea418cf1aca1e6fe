import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { assertUntouched } from './rig/deadline.ts';
import { fileStage } from './rig/file-stage.ts';
import { kubeconfigText } from './rig/kubeconfig.ts';
import { evictedOnTime } from './rig/on-time.ts';
import { Ruling } from './rig/ruling.ts';
import { ServiceProcess } from './rig/service-process.ts';
import { CONTEXT } from './rig/stage.ts';
import { tolerates } from './rig/tolerations.ts';
import { until } from './rig/until.ts';
import { Wiretap } from './rig/wiretap.ts';

const stage = fileStage('bare');

/** A second context of the stage's cluster. */
const SECOND = 'beta';
/** Longer than the countdown of the pods, so that a second evictor had its chance. */
const COUNTDOWN_S = 3;

/** Starts a service with two contexts of the cluster; the second reaches it by this connection. */
async function serveBoth(second: Pick<Connection, 'requestOptions'>): Promise<ServiceProcess> {
  const { cluster, account, services } = stage();
  const { token } = account;
  const kubeconfig = stage().write(
    'both',
    await kubeconfigText([
      { context: CONTEXT, connection: cluster.connection, token },
      { context: SECOND, connection: second, token },
    ]),
  );
  const service = await ServiceProcess.spawn({
    kubeconfig,
    contexts: [CONTEXT, SECOND],
    stateDir: stage().newStateDir(),
  });
  services.push(service);
  return service;
}

test('a start with two contexts of one cluster is refused, whatever its addresses', async () => {
  const { cluster } = stage();
  const { connection } = cluster;
  // The service may not read kube-system here, and a cluster without nodes could be any.
  await cluster.addNode('first');
  const byName = {
    requestOptions: async () => {
      const server = new URL((await connection.requestOptions()).server);
      server.hostname = 'localhost';
      // The certificate of a test cluster may be for its address only.
      return { server, headers: {}, rejectUnauthorized: false };
    },
  };
  for (const second of [connection, byName]) {
    const service = await serveBoth(second);
    const { code, stderr } = await until('it ends', () => service.ended);
    assert.equal(code, 1, stderr);
    const [sentence = '', ...rest] = stderr.split('\n');
    assert.deepEqual(rest, [''], 'one line');
    for (const name of [CONTEXT, SECOND]) assert.ok(sentence.includes(name), sentence);
  }
});

test('a context that answers after the start and is the same cluster evicts nothing, so that a hold of the first holds', async (t) => {
  const { cluster } = stage();
  const tap = await Wiretap.open(cluster.connection);
  t.after(() => tap.close());
  await tap.cut();
  const service = await serveBoth(tap.connection);
  await service.untilPrinted(`${CONTEXT}  watching`);
  await service.untilPrinted(`${SECOND}  cluster.unreachable`);
  const node = await cluster.addNode('one');
  const [held, free] = await Promise.all(
    ['held', 'free'].map((name) =>
      cluster.addPod(node, name, { tolerations: [tolerates('x', COUNTDOWN_S)] }),
    ),
  );
  assert.ok(held && free);
  const { namespace } = cluster;
  await new Ruling(service).hold({ kind: 'pod', namespace, name: held.name });
  await tap.mend();
  const reported = await until('the second context is reported', async () =>
    (await service.states())?.find((line) => line.startsWith(`${SECOND} same-cluster`)),
  );
  assert.ok(reported.includes(CONTEXT), reported);

  const tainted = await cluster.taint(node, { key: 'x' });
  await evictedOnTime(free, COUNTDOWN_S, tainted);
  await service.untilPrinted(held.name, 'held');
  // A service that evicted under the second name would have evicted both by then.
  const late = await cluster.addPod(node, 'late', { tolerations: [tolerates('x', COUNTDOWN_S)] });
  await until('the next is evicted', () => late.evictedAt !== undefined);
  assertUntouched(held);
  assert.ok((await service.states())?.includes(`${CONTEXT} live`));
  assert.deepEqual(service.printed(`${SECOND} ${node}`), []);
});
