import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Counter, Registry } from 'prom-client';
import {
  type ClusterState,
  type ProbeAddress,
  ProbeAddressError,
  type ProbeDeps,
  startProbeServer,
} from '#shared/engine/clusters/probe-server.ts';
import type { TripReport } from '#shared/eviction/guard.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import type { Fault } from '#shared/state/fault.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

const [STANDBY, SYNCING, LIVE] = [{ kind: 'standby' }, { kind: 'syncing' }, { kind: 'live' }] as const;
const REFUSED = { kind: 'access-denied' } as const;
const LONG_AGO = Date.UTC(2026, 0, 1);
const DISCONNECTED = { kind: 'disconnected', since: LONG_AGO, lastContactAt: LONG_AGO } as const;
/** The dependencies of a process without clusters. */
const NOTHING: ProbeDeps = {
  registry: new Registry(),
  states: () => new Map(),
  trips: () => new Map(),
  faults: () => new Map(),
  log: recordingLog(),
};
const LOCAL = { host: '127.0.0.1', port: 0, setBy: { host: '--host', port: '--port' } };

/** Starts a probe server that is closed at the end of the test, and returns a function that requests a path. */
async function served(
  context: TestContext,
  states: Readonly<Record<string, ClusterState>> = {},
  {
    registry = new Registry(),
    trips = [],
    faults = [],
  }: { registry?: Registry; trips?: readonly TripReport[]; faults?: readonly Fault[] } = {},
) {
  const all = new Map<ClusterName, ClusterState>(
    Object.entries(states).map(([name, state]) => [clusterName(name), state]),
  );
  const server = await startProbeServer(LOCAL, {
    ...NOTHING,
    registry,
    states: () => all,
    trips: () => new Map([[clusterName('c1'), trips]]),
    faults: () => new Map([[clusterName('c1'), faults]]),
  });
  context.after(() => server.close());
  const get = (path: string) => fetch(`http://127.0.0.1:${server.port}${path}`);
  return { server, get };
}

test('a process that answers is healthy, for any state of its clusters', async (context) => {
  const { get } = await served(context, { c1: SYNCING });
  const response = await get('/healthz');
  assert.equal(response.status, 200);
  assert.equal(await response.text(), 'ok\n');
});

test('is ready when every cluster whose lease it holds is connected', async (context) => {
  const { get } = await served(context, { c1: LIVE, c2: STANDBY });
  const response = await get('/readyz');
  assert.equal(response.status, 200);
  assert.equal(await response.text(), 'ok\n');
});

test('is not ready before it has listed a cluster whose lease it holds, and names the cluster', async (context) => {
  const { get } = await served(context, { c1: LIVE, c2: SYNCING, c3: STANDBY });
  const response = await get('/readyz');
  assert.equal(response.status, 503);
  assert.equal(await response.text(), '[-]c2/syncing failed: It has not been listed yet.\n');
});

test('reports a disconnected cluster among others, and stays ready', async (context) => {
  const { get } = await served(context, { c1: LIVE, c2: REFUSED, c3: DISCONNECTED });
  const response = await get('/readyz');
  assert.equal(response.status, 200);
  assert.equal(
    await response.text(),
    '[-]c2/access-denied failed: Access denied: see the log.\n[-]c3/disconnected failed: The relay holds its lease, but is disconnected from the cluster, so changes of nodes and pods are missed. Since 2026-01-01T00:00:00Z.\n',
  );
});

test('reports the trips of a guard, and stays ready', async (context) => {
  const trippedAt = Date.UTC(2026, 0, 1);
  const { get } = await served(
    context,
    { c1: LIVE },
    {
      trips: [
        { scope: 'zone', zone: 'a', trippedAt, nodes: 11, total: 20 },
        { scope: 'customTaints', trippedAt, nodes: 18, total: 60 },
      ],
    },
  );
  const response = await get('/readyz');
  assert.equal(response.status, 200);
  assert.equal(
    await response.text(),
    ['11 of 20 nodes down in zone a', '18 of 60 nodes with custom taints']
      .map(
        (what) =>
          `[-]c1/guard-tripped failed: The guard tripped with ${what}, and holds evictions. It resets 5 minutes after fewer than half as many nodes as its limit are affected. Since 2026-01-01T00:00:00Z.\n`,
      )
      .join(''),
  );
});

test('reports faults of a cluster, and is not ready where a repair is needed before any eviction', async (context) => {
  const since = Date.UTC(2026, 0, 1);
  const readiness = async (states: Readonly<Record<string, ClusterState>>, fault: Omit<Fault, 'since'>) => {
    const { get } = await served(context, states, { faults: [{ since, ...fault }] });
    const response = await get('/readyz');
    return [response.status, await response.text()];
  };
  const forbidden = {
    type: 'list-failing',
    resource: 'pods',
    status: 403,
    error: 'It is forbidden',
  } as const;
  const line =
    '[-]c1/list-failing failed: Its pods cannot be listed: It is forbidden. Since 2026-01-01T00:00:00Z.\n';
  assert.deepEqual(await readiness({ c1: LIVE }, forbidden), [503, line]);
  assert.deepEqual(await readiness({ c1: LIVE, c2: LIVE }, forbidden), [200, line]);
  for (const [status, ready] of [
    [401, 503],
    [403, 503],
    [404, 200],
    [500, 200],
    [0, 200],
  ] as const)
    assert.equal((await readiness({ c1: LIVE }, { ...forbidden, status }))[0], ready, `${status}`);
  const full = { type: 'store-failing', error: 'The disk is full' } as const;
  assert.deepEqual(await readiness({ c1: LIVE, c2: STANDBY }, full), [
    503,
    '[-]c1/store-failing failed: Decisions cannot be stored: The disk is full. Since 2026-01-01T00:00:00Z.\n',
  ]);
  for (const [type, what] of [
    ['lease-unavailable', 'Its lease can be neither read nor renewed'],
    ['queue-unavailable', 'Due messages cannot be received'],
  ] as const)
    for (const state of [LIVE, STANDBY])
      assert.deepEqual(await readiness({ c1: state }, { type, error: 'There is no answer' }), [
        503,
        `[-]c1/${type} failed: ${what}: There is no answer. Since 2026-01-01T00:00:00Z.\n`,
      ]);
  const silent = { type: 'watch-failing', resource: 'nodes', error: 'No answer' } as const;
  assert.equal((await readiness({ c1: LIVE }, silent))[0], 200);
});

test('is not ready when every cluster whose lease it holds is disconnected', async (context) => {
  const { get } = await served(context, { c1: DISCONNECTED, c2: REFUSED, c3: STANDBY });
  assert.equal((await get('/readyz')).status, 503);
});

test('reports the state of every cluster in verbose mode', async (context) => {
  const { get } = await served(context, { c1: LIVE, c2: STANDBY, c3: SYNCING });
  const response = await get('/readyz?verbose');
  assert.equal(response.status, 503);
  assert.equal(
    await response.text(),
    '[+]c1/live ok\n[+]c2/standby ok\n[-]c3/syncing failed: It has not been listed yet.\nreadyz check failed\n',
  );
});

test('is ready without clusters, unless they are not known', async (context) => {
  const { get } = await served(context);
  assert.equal((await get('/readyz')).status, 200);
  const server = await startProbeServer(LOCAL, { ...NOTHING, registryError: () => new Error('It is away') });
  context.after(() => server.close());
  const response = await fetch(`http://127.0.0.1:${server.port}/readyz`);
  assert.equal(response.status, 503);
  assert.equal(
    await response.text(),
    '[-]unreadable failed: The registered clusters are unreadable: It is away.\n',
  );
});

test('serves metrics in the format of Prometheus', async (context) => {
  const registry = new Registry();
  new Counter({ name: 'things_total', help: 'Things.', registers: [registry] }).inc(3);
  const { get } = await served(context, {}, { registry });
  const response = await get('/metrics');
  assert.equal(response.headers.get('content-type'), registry.contentType);
  assert.match(await response.text(), /^things_total 3$/m);
});

test('answers with an error when metrics cannot be collected, and keeps serving', async (context) => {
  const registry = new Registry();
  registry.metrics = () => Promise.reject(new Error('a gauge broke'));
  const { get } = await served(context, {}, { registry });
  assert.equal((await get('/metrics')).status, 500);
  assert.equal((await get('/healthz')).status, 200);
});

test('lists the valid paths on any other path', async (context) => {
  const { get } = await served(context);
  const response = await get('/');
  assert.equal(response.status, 404);
  assert.match(await response.text(), /\/healthz, \/readyz, \/metrics/);
});

async function refused(address: ProbeAddress): Promise<string> {
  try {
    await startProbeServer(address, NOTHING);
  } catch (error) {
    assert.ok(error instanceof ProbeAddressError);
    return error.message;
  }
  assert.fail('it was not refused');
}

test('a port in use is reported with a remedy', async (context) => {
  const { server } = await served(context);
  assert.equal(
    await refused({ ...LOCAL, port: server.port }),
    `port ${server.port} of 127.0.0.1 is in use (EADDRINUSE): stop who has it, or choose another with --port`,
  );
});

test('an invalid host, or a host of another machine, is reported with a remedy', async () => {
  for (const host of ['no.host.invalid', '192.0.2.1']) {
    assert.match(
      await refused({ ...LOCAL, host }),
      new RegExp(
        `^${host} is not an address of this machine \\([A-Z_]+\\): specify one with --host, such as 127.0.0.1 or 0.0.0.0$`,
      ),
    );
  }
});

test('closes although a connection is kept alive', async () => {
  const server = await startProbeServer(LOCAL, NOTHING);
  await (await fetch(`http://127.0.0.1:${server.port}/healthz`)).text();
  await server.close();
  await assert.rejects(fetch(`http://127.0.0.1:${server.port}/healthz`));
});
