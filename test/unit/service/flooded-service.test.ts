import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startLocalService } from '#functions/service/service.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { sqliteState } from '#shared/state/sqlite/sqlite-state.ts';
import { systemClock } from '#shared/time/clock.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { until } from '#test/world/turns.ts';

const C1 = clusterName('c1');
const PODS = 30;
/** Upper limit of requests per event loop turn. A listener begins at most one request per connection and turn, and parses a few ahead. */
const REQUESTS_A_TURN = 200;

/** The service on a cluster with an untainted node of 30 pods. */
async function startService(context: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'service-'));
  const log = recordingLog();
  const cluster = new FakeCluster(systemClock);
  cluster.putNode(liveNode('n1'));
  for (let index = 0; index < PODS; index++) {
    cluster.putPod(livePod(`u${index}`, { node: nodeName('n1'), tolerations: [] }));
  }
  const api = Object.assign(cluster, { host: 'c1', allowed: async () => true });
  const service = await startLocalService({
    clusters: {
      apis: new Map([[C1, api]]),
      states: new Map(),
      troubles: new Map(),
      faults: new Map(),
      admit: (take) => take(C1, api),
    },
    state: sqliteState({
      directory: dir,
      historyDays: 7,
      clock: systemClock,
      log,
      lost: assert.fail,
    }),
    probes: { host: '127.0.0.1', port: 0, setBy: { host: '--host', port: '--port' } },
    matching: { comparisonOperators: false },
    policies: { enforce: true },
    log,
  });
  context.after(async () => {
    await service.stop();
    rmSync(dir, { recursive: true });
  });
  return { port: service.probePort, cluster, log };
}

/** Opens connections that read nothing and reconnect when closed, until the test ends. */
function flood(context: TestContext, port: number, callers: number, text: string) {
  const sockets = new Set<ReturnType<typeof connect>>();
  let isOver = false;
  const call = () => {
    if (isOver) return;
    const socket = connect(port, '127.0.0.1').pause();
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      setImmediate(call);
    });
    if (text !== '') socket.write(text);
  };
  for (let caller = 0; caller < callers; caller++) call();
  context.after(() => {
    isOver = true;
    for (const socket of sockets) socket.destroy();
  });
}

for (const [what, callers, text] of [
  ['pipeline metrics, 1,800 each', 60, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_800)],
  ['pipeline health, 3 each', 200, 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3)],
  ['say nothing', 200, ''],
  ['never end their headers', 200, 'GET / HTTP/1.1\r\nHost: a\r\n'],
  ['never send their bodies', 200, 'POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n'],
] as const) {
  test(`evicts pods while ${callers} callers of the probes ${what}`, async (context) => {
    const { port, cluster, log } = await startService(context);
    let [requests, turns] = [0, 0];
    const count = () => {
      requests += 1;
    };
    subscribe('http.server.request.start', count);
    context.after(() => void unsubscribe('http.server.request.start', count));
    flood(context, port, callers, text);
    cluster.putNode(liveNode('n1', 'maintenance'));
    const evicted = () => log.lines.filter(({ event }) => event === 'pod.evicted').length;
    await until(() => {
      turns += 1;
      return evicted() === PODS;
    });
    assert.ok(
      requests <= REQUESTS_A_TURN * turns,
      `${requests} requests in ${turns} turns of the event loop`,
    );
    assert.deepEqual(
      log.lines.filter(({ level }) => level === 'error').map(({ event }) => event),
      [],
    );
  });
}
