import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { proxyFor, proxyHeaders } from '#shared/kubernetes/http/proxy.ts';

const PROXY = 'http://proxy.example:3128';
const proxied = (server: string, noProxy: string) =>
  proxyFor(new URL(server), undefined, { HTTPS_PROXY: PROXY, HTTP_PROXY: PROXY, NO_PROXY: noProxy }) !==
  undefined;

describe('a proxy', () => {
  const server = new URL('https://api.example:6443');
  const proxyOf = (environment: Record<string, string>, to = server) =>
    proxyFor(to, undefined, environment)?.href;

  test("comes from the kubeconfig, or else from the environment variable of the server's protocol", () => {
    const environment = { HTTPS_PROXY: PROXY };
    assert.equal(proxyOf({}), undefined);
    assert.equal(proxyOf(environment), `${PROXY}/`);
    assert.equal(proxyOf({ https_proxy: 'proxy.example:3128' }), `${PROXY}/`);
    assert.equal(proxyOf(environment, new URL('http://api.example')), undefined);
    assert.equal(proxyOf({ http_proxy: PROXY }, new URL('http://api.example')), `${PROXY}/`);
    assert.equal(proxyFor(server, new URL('http://own:1'), environment)?.host, 'own:1');
  });

  test('rejects an unsupported proxy in one sentence without its password', () => {
    assert.throws(() => proxyOf({ HTTPS_PROXY: 'socks5://ali:sesame@proxy' }), {
      message:
        'the proxy in the environment variable HTTPS_PROXY is not an http or https URL; write it as http://HOST:PORT',
    });
  });

  test('receives the name and password in its address', () => {
    assert.deepEqual(proxyHeaders(new URL(PROXY)), {});
    assert.deepEqual(proxyHeaders(new URL('http://ali:b%40ba@proxy')), {
      'proxy-authorization': `Basic ${btoa('ali:b@ba')}`,
    });
  });
});

describe('connects directly', () => {
  for (const [server, noProxy] of [
    ['https://api.example:6443', '*'],
    ['https://api.example:6443', 'other, api.example'],
    ['https://API.example:6443', 'EXAMPLE'],
    ['https://api.example:6443', '.example'],
    ['https://api.example:6443', '*.example'],
    ['https://api.example:6443', 'api.example:6443'],
    ['https://api.example', 'api.example:443'],
    ['https://10.96.0.1', '10.0.0.0/8'],
    ['https://10.96.0.1', '10.96.0.1'],
    ['https://[fd00::1]:6443', 'fd00::/8'],
    ['https://localhost:6443', ''],
    ['https://127.0.0.2:6443', ''],
    ['https://[::1]:6443', ''],
  ] as const) {
    test(`to ${server} with no_proxy "${noProxy}"`, () => assert.equal(proxied(server, noProxy), false));
  }
});

describe('connects through the proxy', () => {
  for (const [server, noProxy] of [
    ['https://api.example:6443', ''],
    ['https://api.example:6443', ',, '],
    ['https://api.example:6443', 'api.example:443'],
    ['https://api.example:6443', '.api.example'],
    ['https://notexample:6443', 'example'],
    ['https://11.96.0.1', '10.0.0.0/8'],
    ['https://10.96.0.1', '10.0.0.0/99,x/8'],
    ['https://api.example', '10.0.0.0/8'],
    ['https://[fd00::1]:6443', '10.0.0.0/8'],
  ] as const) {
    test(`to ${server} despite no_proxy "${noProxy}"`, () => assert.equal(proxied(server, noProxy), true));
  }
});
