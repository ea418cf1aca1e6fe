import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { describe, type TestContext, test } from 'node:test';
import { Counter, Registry } from 'prom-client';
import { startProbeServer } from '#shared/engine/clusters/probe-server.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { clientOf, get } from '#test/unit/http/served.ts';

/** Starts a probe server for a process without clusters. The test advances the stopwatch. */
async function probes(context: TestContext) {
  const registry = new Registry();
  const collected = { times: 0 };
  new Counter({
    name: 'collected_total',
    help: 'Times.',
    registers: [registry],
    collect() {
      collected.times += 1;
      this.inc();
    },
  });
  const none = () => new Map();
  const stopwatch = { ms: 0 };
  const log = recordingLog();
  const server = await startProbeServer(
    { host: '127.0.0.1', port: 0, setBy: { host: '--host', port: '--port' } },
    { registry, states: none, trips: none, faults: none, log, stopwatch: () => stopwatch.ms },
  );
  context.after(() => server.close());
  const send = async (text: string): Promise<string> => {
    const { socket, received, text: all } = await clientOf(server.port, text);
    await received(/\r\n\r\n.+\n/s);
    socket.destroy();
    return all();
  };
  return { server, collected, stopwatch, send };
}

test('a request with an invalid target gets status 400, and does not end the process', async (context) => {
  const { send } = await probes(context);
  for (const target of ['//', '///', 'http://', 'http://[', '/\\\\', '//:0']) {
    assert.match(await send(get(target)), /^HTTP\/1.1 (400|404) /, target);
  }
  assert.match(await send(get('/healthz')), /ok\n/);
});

describe('the Host header', () => {
  test('is accepted from a kubelet, Prometheus or a shell', async (context) => {
    const { mock } = context.mock.method(os, 'hostname', () => 'Node-1.Corp.example');
    syncBuiltinESMExports();
    const { send } = await probes(context);
    mock.restore();
    syncBuiltinESMExports();
    for (const host of [
      'node-1.corp.example',
      '10.1.2.3:8080',
      'taintward.ops.svc:8080',
      'taintward:8080',
      'localhost:8080',
      '[::1]:1',
    ]) {
      assert.match(await send(`GET /healthz HTTP/1.1\r\nhost: ${host}\r\n\r\n`), /^HTTP\/1.1 200 /, host);
    }
  });

  test('is rejected when it is a foreign name (DNS rebinding)', async (context) => {
    const { send } = await probes(context);
    for (const host of ['evil.example', 'evil.example:8080', '127.0.0.1.evil.example']) {
      const answer = await send(`GET /metrics HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
      assert.match(answer, /^HTTP\/1.1 421 /, host);
      assert.doesNotMatch(answer, /collected_total/);
    }
  });
});

test('renders metrics once a second, for any number of requests', async (context) => {
  const { collected, stopwatch, send } = await probes(context);
  const answers = await Promise.all(Array.from({ length: 40 }, () => send(get('/metrics'))));
  assert.equal(collected.times, 1);
  assert.ok(answers.every((answer) => answer.includes('collected_total 1')));
  stopwatch.ms += 999;
  await send(get('/metrics'));
  assert.equal(collected.times, 1);
  stopwatch.ms += 1;
  assert.match(await send(get('/metrics')), /collected_total 2/);
});
