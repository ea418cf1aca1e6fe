import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { describe, type TestContext, test } from 'node:test';
import { listedAddresses, lookup, searchNames } from '#shared/kubernetes/http/resolve.ts';

const refusal = (code: string) => Promise.reject(Object.assign(new Error(code), { code }));

const refused = (code: string) => () => refusal(code);
const FOUR = { address: '192.0.2.1', family: 4 };
const SIX = { address: '2001:db8::1', family: 6 };
const four = async () => [FOUR.address];
const six = async () => [SIX.address];

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
    const lookups = dns(t, four, six);
    const [both] = await Promise.all([found('api.example'), found('api.example')]);
    assert.deepEqual(both, [FOUR, SIX]);
    assert.equal(lookups.mock.callCount(), 1);
    await found('api.example');
    assert.equal(lookups.mock.callCount(), 2);
  });

  test('resolves to one family if the query of the other fails', async (t) => {
    dns(t, four, refused('ETIMEOUT'));
    assert.deepEqual(await found('api.example'), [FOUR]);
  });

  test('is not passed to the system resolver, whose threads would block, when DNS has no answer', async (t) => {
    dns(t, refused('ENODATA'), refused('ETIMEOUT'));
    await assert.rejects(found('api.example'), { code: 'ETIMEOUT' });
  });

  test('is not looked up in DNS if the hosts file lists it', async (t) => {
    const lookups = dns(t, refused('ETIMEOUT'), refused('ETIMEOUT'));
    assert.ok((await found('localhost')).length > 0);
    assert.equal(lookups.mock.callCount(), 0);
  });

  test('resolves to one address of the requested family for callers of a single address', async (t) => {
    dns(t, four, six);
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

describe('a host name with a silent DNS server', () => {
  const silence = () => new Promise<string[]>(() => undefined);

  test('resolves to the addresses of one family without those of the other', {
    timeout: 1_000,
  }, async (t) => {
    dns(t, four, silence);
    assert.deepEqual(await found('api.example'), [FOUR]);
    dns(t, refused('ENODATA'), six);
    assert.deepEqual(await found('api.example'), [SIX]);
  });

  test('fails before a connection times out, by the code of silence', { timeout: 3_000 }, async (t) => {
    let cancelled: () => void = () => undefined;
    t.mock.method(Resolver.prototype, 'cancel', () => cancelled());
    const pending = () =>
      new Promise<string[]>((_, reject) => {
        cancelled = () => reject(Object.assign(new Error('cancelled'), { code: 'ECANCELLED' }));
      });
    dns(t, refused('ECONNREFUSED'), pending);
    await assert.rejects(found('api.example'), { code: 'ETIMEOUT' });
  });
});

describe('a host name without a dot', () => {
  /** Answers queries by name, beside a resolv.conf with a search domain. */
  function searching(t: TestContext, answer: (name: string) => Promise<string[]>) {
    const read = fs.readFileSync;
    t.mock.method(fs, 'readFileSync', ((file: string, ...rest: []) =>
      file === '/etc/resolv.conf'
        ? 'nameserver 192.0.2.53\nsearch corp.example lab.example\n'
        : read(file, ...rest)) as typeof read);
    syncBuiltinESMExports();
    t.after(() => {
      t.mock.restoreAll();
      syncBuiltinESMExports();
    });
    t.mock.method(Resolver.prototype, 'resolve6', refused('ENODATA'));
    return t.mock.method(Resolver.prototype, 'resolve4', answer);
  }

  test('resolves in the first search domain that has it, whatever the server says of the rest', async (t) => {
    searching(t, async (name) =>
      name === 'k8s-api.lab.example'
        ? ['192.0.2.1']
        : refusal(name === 'k8s-api' ? 'ESERVFAIL' : 'ENOTFOUND'),
    );
    assert.deepEqual(await found('k8s-api'), [FOUR]);
  });

  test('prefers the search domain to the name itself', async (t) => {
    searching(t, async (name) => [name === 'k8s-api' ? '192.0.2.9' : '192.0.2.1']);
    assert.deepEqual(await found('k8s-api'), [FOUR]);
  });

  for (const code of ['ESERVFAIL', 'EREFUSED'])
    test(`is passed to the system resolver when DNS answers ${code}`, async (t) => {
      searching(t, refused(code));
      await assert.rejects(found('no-such-name-here'), { syscall: 'getaddrinfo' });
      await assert.rejects(found('api.example'), { code });
    });
});

test('search domains apply to names with few dots, as resolv.conf(5) describes', () => {
  const settings = 'domain old.example\nsearch a.example b.example .\noptions timeout:1 ndots:2 rotate\n';
  assert.deepEqual(searchNames(settings, 'api'), ['api.a.example', 'api.b.example', 'api']);
  assert.deepEqual(searchNames(settings, 'api.x'), ['api.x.a.example', 'api.x.b.example', 'api.x']);
  assert.deepEqual(searchNames(settings, 'api.x.y'), ['api.x.y']);
  assert.deepEqual(searchNames(settings, 'api.'), ['api.']);
  assert.deepEqual(searchNames('search a.example', 'api.x'), ['api.x']);
  assert.deepEqual(searchNames('', 'api'), ['api']);
});

test('parses a hosts file as hosts(5) describes', () => {
  const hosts = '# 192.0.2.9 api\n192.0.2.1\tAPI.example  api # main\n\n2001:db8::1 api\n192.0.2.2 api2';
  assert.deepEqual(listedAddresses(hosts, 'Api'), [FOUR, SIX]);
  assert.deepEqual(listedAddresses(hosts, 'api.example.').length, 1);
  assert.deepEqual(listedAddresses(hosts, 'main'), []);
});
