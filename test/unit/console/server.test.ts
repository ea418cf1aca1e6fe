import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { readPageFiles } from '#shared/console/page-files.ts';
import { ConsoleAddressError, startConsole } from '#shared/console/server.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { StoreError } from '#shared/state/store.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { aPage, servedConsole } from './served-console.ts';

/** Options of a console that never serves. */
const NOTHING = {
  portSetBy: '--port',
  api: undefined as never,
  clock: undefined as never,
  log: undefined as never,
};
const ACT = JSON.stringify({ kind: 'stop', cluster: 'prod', reason: 'a test' });

test('a link admits one browser once and sets an HttpOnly, SameSite=Strict cookie for its path', async (t) => {
  const { console, enter, send } = await servedConsole(t);
  const link = console.link();
  const { entered, path, cookie } = await enter(link);
  assert.equal(entered.status, 200);
  assert.match(
    entered.headers['set-cookie']?.[0] ?? '',
    new RegExp(`^taintward=[\\w-]{32}; Path=${path}; HttpOnly; SameSite=Strict$`),
  );
  const { pathname, search } = new URL(link);
  const again = await send('GET', `${pathname}${search}`);
  assert.equal(again.status, 401);
  assert.match(again.body, /link was opened before/);
  assert.equal(again.headers['set-cookie'], undefined);
  assert.equal((await send('GET', path, { cookie })).status, 200);
});

test('keeps a link valid after HEAD and prefetch requests', async (t) => {
  const { console, enter, send } = await servedConsole(t);
  const link = console.link();
  const { pathname, search } = new URL(link);
  assert.equal((await send('HEAD', `${pathname}${search}`)).status, 401);
  assert.equal((await send('GET', `${pathname}${search}`, { 'sec-purpose': 'prefetch' })).status, 401);
  assert.equal((await enter(link)).entered.status, 200);
});

test('rejects requests without a cookie, with a wrong cookie, or under another path', async (t) => {
  const { enter, send, log } = await servedConsole(t);
  const [one, other] = [await enter(), await enter()];
  const cases: [string, Record<string, string>][] = [
    [one.path, {}],
    [`${one.path}api/status`, {}],
    [`${one.path}api/status`, { cookie: 'taintward=guessed' }],
    [`${one.path}api/status`, { cookie: other.cookie }],
    [`${one.path}assets/whatever/main.ts`, {}],
    ['/api/status', { cookie: one.cookie }],
    ['/', { cookie: one.cookie }],
    ['/?key=guessed', {}],
  ];
  for (const [path, headers] of cases) {
    assert.equal((await send('GET', path, headers)).status, 401, `${path} ${JSON.stringify(headers)}`);
  }
  assert.equal((await send('GET', `${one.path}api/status`, { cookie: one.cookie })).status, 200);
  assert.deepEqual(log.lines, []);
});

test('rejects another host name (DNS rebinding), with or without the cookie', async (t) => {
  const { enter, send, port } = await servedConsole(t);
  const { path, own } = await enter();
  for (const host of [
    `evil.example:${port}`,
    'evil.example',
    '127.0.0.1',
    `127.0.0.1.evil.example:${port}`,
  ]) {
    const refused = await send('GET', `${path}api/status`, { ...own, host });
    assert.equal(refused.status, 421, host);
    assert.match(refused.body, /The console is at http:\/\/[\w.:]+ and under no other name\./);
    assert.doesNotMatch(refused.body, /clusters/);
  }
  assert.equal((await send('GET', `${path}api/status`, { ...own, host: `localhost:${port}` })).status, 200);
});

test('serves on the IPv6 loopback address under its address and localhost only', async (t) => {
  const { console, enter, send, host, port } = await servedConsole(t, { host: '::1' });
  assert.equal(host, `[::1]:${port}`);
  assert.ok(console.link().startsWith(`http://[::1]:${port}/?key=`));
  const { path, own, ask } = await enter();
  assert.deepEqual(
    (await ask('GET api/status', {})).clusters.map(({ cluster }) => cluster),
    ['prod'],
  );
  const stop = { kind: 'stop', cluster: clusterName('prod'), reason: 'a test' } as const;
  const { confirm } = await ask('POST api/preview', stop);
  await ask('POST api/acts', { act: stop, confirm });
  assert.equal((await send('GET', `${path}api/status`, { ...own, host: `localhost:${port}` })).status, 200);
  for (const other of [`127.0.0.1:${port}`, `::1:${port}`, '[::1]', `[::]:${port}`]) {
    assert.equal((await send('GET', `${path}api/status`, { ...own, host: other })).status, 421, other);
  }
});

test('rejects an action from another page (CSRF), whichever marker is missing', async (t) => {
  const { enter, send, rulesStore } = await servedConsole(t);
  const { path, own } = await enter();
  const { origin: _, ...noOrigin } = own;
  const { 'x-taintward-token': __, ...noToken } = own;
  const cases: [string, Record<string, string>, number][] = [
    ['no origin', noOrigin, 403],
    ['another origin', { ...own, origin: 'https://evil.example' }, 403],
    ['an opaque origin', { ...own, origin: 'null' }, 403],
    ['another port of this machine', { ...own, origin: 'http://127.0.0.1:1' }, 403],
    ['another site', { ...own, 'sec-fetch-site': 'cross-site' }, 403],
    ['another port', { ...own, 'sec-fetch-site': 'same-site' }, 403],
    ['typed by hand', { ...own, 'sec-fetch-site': 'none' }, 403],
    ['no token', noToken, 403],
    ['a wrong token', { ...own, 'x-taintward-token': 'guessed' }, 403],
    ['a form', { ...own, 'content-type': 'text/plain' }, 415],
    ['a form', { ...own, 'content-type': 'application/x-www-form-urlencoded' }, 415],
  ];
  for (const [what, headers, status] of cases) {
    assert.equal((await send('POST', `${path}api/preview`, headers, ACT)).status, status, what);
  }
  assert.equal((await send('POST', `${path}api/preview`, own, ACT)).status, 200);
  const { orders } = await rulesStore.read(clusterName('prod'));
  assert.equal(orders.revision, 0);
});

test('rejects requests for data and scripts from another page', async (t) => {
  const { enter, send } = await servedConsole(t);
  const { path, cookie } = await enter();
  for (const site of ['cross-site', 'same-site']) {
    const headers = { cookie, 'sec-fetch-site': site };
    assert.equal((await send('GET', `${path}api/session`, headers)).status, 403);
    assert.equal((await send('GET', `${path}assets/x/main.ts`, headers)).status, 403);
  }
});

test('rejects methods other than GET, HEAD, and POST, and questions sent as actions', async (t) => {
  const { enter, send } = await servedConsole(t);
  const { path, own } = await enter();
  for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    assert.equal((await send(method, `${path}api/acts`, own)).status, 404, method);
  }
  assert.equal((await send('GET', `${path}api/acts`, own)).status, 404);
  assert.equal((await send('POST', `${path}api/status`, own, '{}')).status, 404);
  assert.equal((await send('GET', `${path}api/toString`, own)).status, 404);
});

test('allows no inline script but the import map, no content of other sites, and no framing', async (t) => {
  const { enter, send } = await servedConsole(t);
  const { path, cookie } = await enter();
  for (const url of [path, `${path}api/status`, '/', `${path}none`]) {
    const { headers } = await send('GET', url, { cookie });
    const policy = String(headers['content-security-policy']);
    const scripts = url === path ? /^script-src 'self' 'sha256-[\w+/=]{44}'$/ : /^script-src 'self'$/;
    const [first, second = '', third] = policy.split('; ');
    assert.deepEqual([first, third], ["default-src 'none'", "style-src 'self'"]);
    assert.match(second, scripts);
    assert.match(policy, /connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    assert.equal(headers['x-frame-options'], 'DENY');
    assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
    assert.equal(headers['cross-origin-resource-policy'], 'same-origin');
    assert.equal(headers['access-control-allow-origin'], undefined);
    assert.equal(headers['cache-control'], 'no-store');
  }
});

test('loads page and API for the first admitted browser, and again after a failure', async (t) => {
  const page = readPageFiles(aPage(t));
  const broken = new Error('page/index.html is not there');
  const loads = [() => Promise.reject(broken), async () => undefined as never];
  let loaded = 0;
  const log = recordingLog();
  const console = await startConsole({
    port: 0,
    portSetBy: '--port',
    clock: new DrivenClock(NOW),
    log,
    page,
    api: () => (loads[loaded++] ?? assert.fail('it was loaded before'))(),
  });
  t.after(() => console.close());
  assert.equal((await fetch(`${console.address}/somewhere/`)).status, 401);
  const entered = await fetch(console.link());
  const [cookie = ''] = entered.headers.get('set-cookie')?.split(';') ?? [];
  const [, path = ''] = /url=(\/[^"]+)"/.exec(await entered.text()) ?? [];
  const get = () => fetch(`${console.address}${path}`, { headers: { cookie } });
  const act = { method: 'POST', headers: { cookie, origin: 'http://evil.example' } };
  assert.equal((await fetch(`${console.address}${path}api/acts`, act)).status, 403);
  assert.equal(loaded, 0);
  const refused = await get();
  assert.equal(refused.status, 500);
  assert.equal(await refused.text(), 'The console failed: its log says why.\n');
  assert.deepEqual(log.lines, [
    { level: 'error', event: 'console.failed', fields: { path: '', error: broken } },
  ]);
  const both = await Promise.all([get(), get()]);
  assert.deepEqual(
    both.map(({ status }) => status),
    [200, 200],
  );
  assert.equal(loaded, 2);
});

test('logs an unreadable file of the page and continues', async (t) => {
  const directory = aPage(t);
  const { enter, send, log } = await servedConsole(t, { page: readPageFiles(directory) });
  const { path, cookie } = await enter();
  const [asset = ''] = /assets\/[^"]+\.css/.exec((await send('GET', path, { cookie })).body) ?? [];
  rmSync(join(directory, 'styles.css'));
  const answered = await send('GET', `${path}${asset}`, { cookie });
  assert.deepEqual([answered.status, answered.body], [500, 'The console failed: its log says why.\n']);
  const [{ event, fields } = assert.fail('nothing was logged'), ...others] = log.lines;
  assert.deepEqual([event, fields['path'], others], ['console.failed', asset, []]);
  assert.equal((await send('GET', path, { cookie })).status, 200);
});

test('reads a body up to its limit and rejects a body that is not JSON in one sentence', async (t) => {
  const { enter, send } = await servedConsole(t);
  const { path, own } = await enter();
  const long = JSON.stringify({ kind: 'stop', reason: 'x'.repeat(70_000) });
  assert.equal((await send('POST', `${path}api/preview`, own, long)).status, 413);
  const broken = await send('POST', `${path}api/preview`, own, '{');
  assert.deepEqual([broken.status, broken.body], [400, '{"error":"The request body is not JSON."}']);
  const unknown = await send('POST', `${path}api/preview`, own, '{"kind":"stop","why":"x","host":"evil"}');
  assert.equal(unknown.status, 400);
});

test('ends a session after 12 hours, and all sessions with the console', async (t) => {
  const { enter, send, clock, console } = await servedConsole(t);
  const { path, cookie } = await enter();
  await clock.advanceTo(clock.now() + 12 * 3_600_000);
  assert.equal((await send('GET', path, { cookie })).status, 401);
  const link = console.link();
  await console.close();
  await assert.rejects(send('GET', link));
});

test('rejects paths outside the page and invalid URLs', async (t) => {
  const { enter, send } = await servedConsole(t);
  const { path, cookie } = await enter();
  const page = (await send('GET', path, { cookie })).body;
  const version = /assets\/([\w-]+)\/main\.ts/.exec(page)?.[1] ?? '';
  for (const header of [
    '../server.ts',
    '..%2fserver.ts',
    '/etc/passwd',
    'packages/preact/../../package.json',
  ]) {
    const { status } = await send('GET', `${path}assets/${version}/${header}`, { cookie });
    assert.ok(status === 404 || status === 401, `${header}: ${status}`);
  }
  assert.equal((await send('GET', 'http://[', { cookie })).status, 400);
});

test('caches assets by content hash and revalidates them by ETag', async (t) => {
  const { enter, send } = await servedConsole(t);
  const { path, cookie } = await enter();
  const page = (await send('GET', path, { cookie })).body;
  const asset = /assets\/[\w-]+\/main\.ts/.exec(page)?.[0] ?? '';
  const first = await send('GET', `${path}${asset}`, { cookie });
  assert.equal(first.headers['content-type'], 'text/javascript; charset=utf-8');
  assert.equal(first.headers['cache-control'], 'private, max-age=31536000, immutable');
  assert.match(first.body, /export const made {10}= h/);
  const again = await send('GET', `${path}${asset}`, { cookie, 'if-none-match': first.headers.etag ?? '' });
  assert.deepEqual([again.status, again.body], [304, '']);
  assert.equal((await send('GET', `${path}assets/older/main.ts`, { cookie })).status, 404);
});

test('listens on the loopback interface or not at all, and reports a port in use', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  t.after(() => taken.close());
  await new Promise((listening) => taken.once('listening', listening));
  const { port } = taken.address() as AddressInfo;
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'localhost.evil.example']) {
    await assert.rejects(
      startConsole({ ...NOTHING, host, port: 0 }),
      (error: unknown) =>
        error instanceof ConsoleAddressError && /127\.0\.0\.1 or ::1 only/.test(error.message),
    );
  }
  await assert.rejects(
    startConsole({ ...NOTHING, port }),
    new ConsoleAddressError(
      `the console cannot be served on port ${port} of 127.0.0.1 (EADDRINUSE): choose another with --port, or 0 for any`,
    ),
  );
});

test('logs neither token, cookie, path, nor key for any failure', async (t) => {
  const { enter, send, log, fleet, console } = await servedConsole(t);
  const { path, cookie, token, own, entered } = await enter();
  t.mock.method(fleet.history, 'entries', () => {
    throw new StoreError('the store is gone');
  });
  assert.equal((await send('GET', `${path}api/history?pod=x`, own)).status, 502);
  const logged = JSON.stringify(
    log.lines.map(({ fields }) => ({ ...fields, error: String(fields['error']) })),
  );
  assert.match(logged, /api\/history/);
  for (const secret of [
    path.replaceAll('/', ''),
    cookie.split('=')[1],
    token,
    new URL(console.link()).search.slice(5),
  ]) {
    assert.ok(secret && secret.length >= 32);
    assert.ok(!logged.includes(secret));
  }
  assert.equal(entered.status, 200);
});

test('logs no failure for a request that its sender ends early', async (t) => {
  const { enter, send, log, host, port } = await servedConsole(t);
  const { path, own } = await enter();
  const headers = Object.entries({ ...own, host, 'content-length': '1000' }).map((each) => each.join(': '));
  const socket = connect(Number(port), '127.0.0.1');
  socket.end(`POST ${path}api/preview HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n{`);
  socket.resume();
  await once(socket, 'close');
  assert.equal((await send('GET', `${path}api/session`, own)).status, 200);
  assert.deepEqual(log.lines, []);
});

test('names an unknown path in a short sentence', async (t) => {
  const { enter, send } = await servedConsole(t);
  const { path, own } = await enter();
  const { status, body } = await send('GET', `${path}${'x'.repeat(5_000)}`, own);
  assert.equal(status, 404);
  assert.ok(body.length < 200, body);
});

test('escapes the rejected value in an error message', async (t) => {
  const { enter, send } = await servedConsole(t);
  const { path, own } = await enter();
  const act = { kind: 'release', cluster: 'prod', id: '\u0000\u202e', reason: 'a test' };
  const { status, body } = await send('POST', `${path}api/preview`, own, JSON.stringify(act));
  assert.equal(status, 422);
  assert.match(JSON.parse(body).error, /^Hold "\\u0000\\u202e" not found in cluster "prod"/);
});
