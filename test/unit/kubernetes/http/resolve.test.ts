import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { describe, type TestContext, test } from 'node:test';
import { listedAddresses, lookup } from '#shared/kubernetes/http/resolve.ts';

const refusal = (code: string) => Promise.reject(Object.assign(new Error(code), { code }));

function dns(t: TestContext, four: () => Promise<string[]>, six: () => Promise<string[]>) {
  t.mock.method(Resolver.prototype, 'resolve6', six);
  return t.mock.method(Resolver.prototype, 'resolve4', four);
}

const found = (name: string) =>
  new Promise<string | LookupAddress[]>((resolve, reject) => {
    lookup(name, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)));
  });

describe('a host name', () => {
  test('resolves to all DNS addresses with one query for concurrent callers', async (t) => {
    const asked = dns(
      t,
      async () => ['192.0.2.1'],
      async () => ['2001:db8::1'],
    );
    const [both] = await Promise.all([found('api.example'), found('api.example')]);
    assert.deepEqual(both, [
      { address: '192.0.2.1', family: 4 },
      { address: '2001:db8::1', family: 6 },
    ]);
    assert.equal(asked.mock.callCount(), 1);
    await found('api.example');
    assert.equal(asked.mock.callCount(), 2);
  });

  test('resolves to one family if the query of the other fails', async (t) => {
    dns(
      t,
      async () => ['192.0.2.1'],
      () => refusal('ETIMEOUT'),
    );
    assert.deepEqual(await found('api.example'), [{ address: '192.0.2.1', family: 4 }]);
  });

  test('is not passed to the system resolver, whose threads would block, when DNS has no answer', async (t) => {
    dns(
      t,
      () => refusal('ENODATA'),
      () => refusal('ETIMEOUT'),
    );
    await assert.rejects(found('api.example'), { code: 'ETIMEOUT' });
  });

  test('is not looked up in DNS if the hosts file lists it', async (t) => {
    const asked = dns(
      t,
      () => refusal('ETIMEOUT'),
      () => refusal('ETIMEOUT'),
    );
    assert.ok((await found('localhost')).length > 0);
    assert.equal(asked.mock.callCount(), 0);
  });

  test('resolves to one address of the requested family for callers of a single address', async (t) => {
    dns(
      t,
      async () => ['192.0.2.1'],
      async () => ['2001:db8::1'],
    );
    for (const [family, address] of [
      [0, '192.0.2.1'],
      [4, '192.0.2.1'],
      [6, '2001:db8::1'],
    ] as const) {
      const { promise, resolve } = Promise.withResolvers<unknown>();
      lookup('api.example', { family }, (_error, one) => resolve(one));
      assert.equal(await promise, address);
    }
  });
});

test('parses a hosts file as hosts(5) describes', () => {
  const hosts = '# 192.0.2.9 api\n192.0.2.1\tAPI.example  api # main\n\n2001:db8::1 api\n192.0.2.2 api2';
  assert.deepEqual(listedAddresses(hosts, 'Api'), [
    { address: '192.0.2.1', family: 4 },
    { address: '2001:db8::1', family: 6 },
  ]);
  assert.deepEqual(listedAddresses(hosts, 'api.example.').length, 1);
  assert.deepEqual(listedAddresses(hosts, 'main'), []);
});
