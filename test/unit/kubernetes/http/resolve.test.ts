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

describe('a name', () => {
  test('has the addresses that DNS knows, asked once for all who wait', async (t) => {
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

  test('has those of one family, where the other’s question is not answered', async (t) => {
    dns(
      t,
      async () => ['192.0.2.1'],
      () => refusal('ETIMEOUT'),
    );
    assert.deepEqual(await found('api.example'), [{ address: '192.0.2.1', family: 4 }]);
  });

  test('of which DNS says nothing is not asked of the system, whose threads would wait for it', async (t) => {
    dns(
      t,
      () => refusal('ENODATA'),
      () => refusal('ETIMEOUT'),
    );
    await assert.rejects(found('api.example'), { code: 'ETIMEOUT' });
  });

  test('that the hosts file lists is not asked of DNS', async (t) => {
    const asked = dns(
      t,
      () => refusal('ETIMEOUT'),
      () => refusal('ETIMEOUT'),
    );
    assert.ok((await found('localhost')).length > 0);
    assert.equal(asked.mock.callCount(), 0);
  });

  test('gives one address to who wants one, of the family that is wanted', async (t) => {
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

test('a hosts file is read as hosts(5) says', () => {
  const hosts = '# 192.0.2.9 api\n192.0.2.1\tAPI.example  api # main\n\n2001:db8::1 api\n192.0.2.2 api2';
  assert.deepEqual(listedAddresses(hosts, 'Api'), [
    { address: '192.0.2.1', family: 4 },
    { address: '2001:db8::1', family: 6 },
  ]);
  assert.deepEqual(listedAddresses(hosts, 'api.example.').length, 1);
  assert.deepEqual(listedAddresses(hosts, 'main'), []);
});
