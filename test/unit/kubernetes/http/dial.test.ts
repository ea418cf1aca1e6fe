import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { until } from '#test/world/turns.ts';
import { NODE, node } from '../builders.ts';
import { clientOf, listening, scriptedServer, tunnel } from '../scripted-server.ts';

/** A proxy that admits callers with its password, if it has one, and records requests and their logins. */
async function aProxy(t: TestContext, status = 200) {
  const requests: (readonly [
    method: string | undefined,
    url: string | undefined,
    login: string | undefined,
  ])[] = [];
  const proxy = createServer(({ method, url, headers }, response) => {
    requests.push([method, url, headers['proxy-authorization']]);
    node(response, undefined as never);
  });
  proxy.on('connect', ({ method, url = '', headers }, outer: Socket) => {
    requests.push([method, url, headers['proxy-authorization']]);
    if (status !== 200) {
      outer.once('end', () => outer.end()).resume();
      outer.write(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    outer.write('HTTP/1.1 200 Connected\r\n\r\n');
    tunnel(outer, Number(url.split(':')[1]));
  });
  const { host, connections } = await listening(t, proxy);
  return { url: new URL(`http://ali:baba@${host}`), requests, connections };
}

const LOGIN = `Basic ${btoa('ali:baba')}`;

describe('through a proxy', () => {
  for (const protocol of ['h2', 'http/1.1 over TLS'] as const) {
    test(`reaches a server by a tunnel with ${protocol}`, async (t) => {
      const { url: proxy, requests: tunnels } = await aProxy(t);
      const { api, host, requests } = await scriptedServer(t, node, { protocol, access: { proxy } });
      assert.equal((await api.getNode(NODE))?.name, 'n1');
      assert.deepEqual(tunnels, [['CONNECT', host, LOGIN]]);
      assert.equal(requests[0]?.headers['proxy-authorization'], undefined);
    });
  }

  test('requests a plain http server by its whole URL', async (t) => {
    const { url: proxy, requests } = await aProxy(t);
    const access = { server: new URL('http://api.example:8001/root'), headers: {}, proxy };
    assert.equal((await clientOf(t, () => access).getNode(NODE))?.name, 'n1');
    assert.deepEqual(requests, [['GET', 'http://api.example:8001/root/api/v1/nodes/n1', LOGIN]]);
  });

  test('names a proxy that rejects the call, and its status, and leaves no connection to it', async (t) => {
    const { url: proxy, connections } = await aProxy(t, 407);
    const { api, host, requests } = await scriptedServer(t, node, { protocol: 'h2', access: { proxy } });
    await assert.rejects(api.getNode(NODE), {
      name: 'ApiError',
      message: `Cannot get nodes n1 at ${host}: the proxy ${proxy.host} answered 407.`,
    });
    assert.equal(requests.length, 0);
    await until(() => connections().open === 0);
  });

  const overProxy = (t: TestContext, proxy?: URL) => {
    const access = { server: new URL('https://api.example'), headers: {}, ...(proxy ? { proxy } : {}) };
    return clientOf(t, () => access).getNode(NODE);
  };

  test('names a proxy that cannot be reached, and the reason', async (t) => {
    await assert.rejects(overProxy(t, new URL('http://127.0.0.1:1')), {
      message:
        'Cannot get nodes n1 at api.example: the proxy 127.0.0.1:1 cannot be reached: the connection was refused; check that the server runs and its address is right (ECONNREFUSED).',
    });
  });

  for (const name of ['HTTPS_PROXY', 'https_proxy'])
    test(`explains that ${name} is not an http or https URL`, async (t) => {
      const before = process.env[name];
      process.env[name] = 'socks5://ali:sesame@127.0.0.1:1080';
      t.after(() => {
        if (before === undefined) delete process.env[name];
        else process.env[name] = before;
      });
      await assert.rejects(overProxy(t), {
        message:
          'Cannot get nodes n1 at api.example: the proxy in the environment variable HTTPS_PROXY is not an http or https URL; write it as http://HOST:PORT.',
      });
    });
});
