import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { nodeName } from '#shared/eviction/identity.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { tlsServer } from '../tls-server.ts';

const NODE = nodeName('n1');
const NODE_JSON = JSON.stringify({ metadata: { name: 'n1' } });

/** A proxy that admits callers with its password, if it has one, and records requests and their logins. */
async function aProxy(t: TestContext, status = 200) {
  const asked: (readonly [method: string | undefined, url: string | undefined, login: string | undefined])[] =
    [];
  const open = new Set<Socket>();
  const proxy = createServer(({ method, url, headers }, response) => {
    asked.push([method, url, headers['proxy-authorization']]);
    response.writeHead(status).end(NODE_JSON);
  });
  proxy.on('connect', ({ method, url = '', headers }, outer: Socket) => {
    asked.push([method, url, headers['proxy-authorization']]);
    if (status !== 200) {
      outer.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const [host, port] = url.split(':');
    const inner = connect(Number(port), host);
    for (const socket of [outer, inner]) open.add(socket.on('error', () => undefined));
    outer.write('HTTP/1.1 200 Connected\r\n\r\n');
    outer.pipe(inner).pipe(outer);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => {
    for (const socket of open) socket.destroy();
    proxy.closeAllConnections();
    proxy.close();
  });
  return { url: new URL(`http://ali:baba@127.0.0.1:${(proxy.address() as AddressInfo).port}`), asked };
}

const LOGIN = `Basic ${btoa('ali:baba')}`;

describe('through a proxy', () => {
  for (const http2 of [true, false]) {
    test(`reaches a server by a tunnel with ${http2 ? 'HTTP/2' : 'HTTP/1.1'}`, async (t) => {
      const { url: proxy, asked } = await aProxy(t);
      const { api, host, requests } = await tlsServer(t, (response) => response.end(NODE_JSON), {
        http2,
        proxy,
      });
      assert.equal((await api.getNode(NODE))?.name, 'n1');
      assert.deepEqual(asked, [['CONNECT', host, LOGIN]]);
      assert.equal(requests[0]?.headers['proxy-authorization'], undefined);
    });
  }

  test('requests a plain http server by its whole URL', async (t) => {
    const { url: proxy, asked } = await aProxy(t);
    const server = new URL('http://api.example:8001/root');
    const api = new RestApi({
      host: server.host,
      requestOptions: async () => ({ server, headers: {}, proxy }),
    });
    t.after(() => api.close());
    assert.equal((await api.getNode(NODE))?.name, 'n1');
    assert.deepEqual(asked, [['GET', 'http://api.example:8001/root/api/v1/nodes/n1', LOGIN]]);
  });

  test('names a proxy that rejects the call, and its status', async (t) => {
    const { url: proxy } = await aProxy(t, 407);
    const { api, host, requests } = await tlsServer(t, (response) => response.end(), { proxy });
    await assert.rejects(api.getNode(NODE), {
      name: 'ApiError',
      message: `Cannot get nodes n1 at ${host}: the proxy ${proxy.host} answered 407.`,
    });
    assert.equal(requests.length, 0);
  });

  const overProxy = (proxy?: URL) => {
    const server = new URL('https://api.example');
    return new RestApi({
      host: server.host,
      requestOptions: async () => ({ server, headers: {}, ...(proxy ? { proxy } : {}) }),
    }).getNode(NODE);
  };

  test('names a proxy that cannot be reached, and the reason', async () => {
    await assert.rejects(overProxy(new URL('http://127.0.0.1:1')), {
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
      await assert.rejects(overProxy(), {
        message:
          'Cannot get nodes n1 at api.example: the proxy in the environment variable HTTPS_PROXY is not an http or https URL; write it as http://HOST:PORT.',
      });
    });
});
