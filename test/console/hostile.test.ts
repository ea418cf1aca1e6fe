import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { Console } from '#shared/console/server.ts';
import type { Page } from './browser/packages.ts';
import { testBrowser, Visitor } from './rig/browser.ts';
import { openNamed } from './rig/named.ts';
import { openScene } from './rig/scene.ts';

// Resolves these names to this machine, as a hostile resolver may.
const browser = testBrowser('--host-resolver-rules=MAP *.example 127.0.0.1');

/** Starts a server with an empty page on another port of this machine; the tests run its scripts. */
async function otherServer(t: TestContext): Promise<number> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<!doctype html><title>Another page</title>');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** Opens a console in a session; returns all data of the session that can be found out, except its cookie. */
async function session(t: TestContext) {
  const scene: Console = await openScene(t);
  t.after(() => scene.close());
  const visitor = await Visitor.enter(await browser(), scene.link());
  t.after(() => visitor.leave());
  const { page } = visitor;
  const { href: base, port } = new URL('.', page.url());
  const token = String(
    await page.evaluate("fetch('api/session').then((r) => r.json()).then((s) => s.token)"),
  );
  const script = String(await page.evaluate("document.querySelector('script[src]').src"));
  const style = String(await page.evaluate("document.querySelector('link[rel=stylesheet]').href"));
  return { page, base, port, token, script, style };
}

/** The result of each attempt of a page in a word: `refused`, or the data that it got. */
const ATTEMPTS = (known: object) => `(async ({ base, token, script, style }) => {
  const tried = (attempt) => new Promise((resolve) => {
    setTimeout(() => resolve('refused'), 5_000);
    Promise.resolve(attempt(resolve)).catch(() => resolve('refused'));
  });
  const act = JSON.stringify({ kind: 'stop', reason: 'an attack' });
  const json = { 'content-type': 'application/json', 'x-taintward-token': token };
  const added = (name, fields, resolve) => {
    const element = Object.assign(document.createElement(name), fields);
    element.onload = () => resolve('loaded');
    element.onerror = () => resolve('refused');
    document.body.append(element);
  };
  const text = async (response) => (await response).text();
  const asked = (path, options) => async (resolve) =>
    resolve((await text(fetch(base + path, { credentials: 'include', ...options }))) || 'refused');
  return {
    'reads': await tried(asked('api/status', {})),
    'reads without asking whether it may': await tried(asked('api/status', { mode: 'no-cors' })),
    'acts as the page does': await tried(asked('api/acts', { method: 'POST', headers: json, body: act })),
    'acts by a simple request': await tried(asked('api/acts', { method: 'POST', mode: 'no-cors', body: act })),
    'listens': await tried((resolve) => {
      const source = new EventSource(base + 'api/live', { withCredentials: true });
      source.addEventListener('status', ({ data }) => resolve(data));
      source.onerror = () => resolve('refused');
    }),
    'opens a socket': await tried((resolve) => {
      const socket = new WebSocket(base.replace('http', 'ws') + 'api/live');
      socket.onopen = () => resolve('open');
      socket.onerror = () => resolve('refused');
    }),
    'loads its script': await tried((resolve) => added('script', { src: script }, resolve)),
    'loads its style': await tried((resolve) => added('link', { rel: 'stylesheet', href: style }, resolve)),
    'posts a form': await tried((resolve) => {
      added('iframe', { name: 'posted' }, () => undefined);
      const form = Object.assign(document.createElement('form'), {
        action: base + 'api/acts', method: 'post', enctype: 'text/plain', target: 'posted',
      });
      form.append(Object.assign(document.createElement('input'), { name: act.slice(0, -1) + ',"x":"', value: '"}' }));
      document.body.append(form);
      form.submit();
      setTimeout(() => resolve('refused'), 500);
    }),
    'holds on to its window': await tried((resolve) => {
      const opened = window.open(base);
      const look = setInterval(() => {
        if (!opened || opened.closed) { clearInterval(look); resolve('refused'); }
      }, 50);
    }).then((said) => (window.opener === null ? said : 'opener')),
  };
})(${JSON.stringify(known)})`;

async function unharmed(page: Page): Promise<void> {
  const { fleetStop } = (await page.evaluate("fetch('api/status').then((r) => r.json())")) as {
    fleetStop?: unknown;
  };
  assert.equal(fleetStop, undefined);
  const audit = JSON.stringify(await page.evaluate("fetch('api/audit').then((r) => r.json())"));
  assert.doesNotMatch(audit, /an attack/);
}

for (const [who, host] of [
  ['another port of this machine', '127.0.0.1'],
  ['another site', 'evil.example'],
] as const) {
  test(`a page of ${who} gets nothing, even with all data of a session except its cookie`, async (t) => {
    const { page, base, token, script, style } = await session(t);
    const hostile = await page.context().newPage();
    await hostile.goto(`http://${host}:${await otherServer(t)}/`);
    const came = (await hostile.evaluate(ATTEMPTS({ base, token, script, style }))) as Record<string, string>;
    for (const [what, got] of Object.entries(came)) assert.equal(got, 'refused', what);
    // A rejected frame is loaded, too, with the browser's own message.
    await hostile.evaluate(
      `new Promise((onload) => document.body.append(Object.assign(document.createElement('iframe'), { src: '${base}', onload })))`,
    );
    for (const frame of hostile.frames().slice(1)) {
      assert.doesNotMatch(await frame.content(), /Overview|assets\//);
    }
    await unharmed(page);
  });
}

test("a page under a name that was rebound to the console (DNS rebinding) gets only the console's address", async (t) => {
  const { page, base, port } = await session(t);
  const { pathname } = new URL(base);
  const hostile = await page.context().newPage();
  for (const path of ['/', pathname, `${pathname}api/status`]) {
    const answer = await hostile.goto(`http://rebound.example:${port}${path}`);
    assert.equal(answer?.status(), 421);
  }
});

test('a cookie that another port sets under the same name ends no session', async (t) => {
  const { page } = await session(t);
  const hostile = await page.context().newPage();
  await hostile.goto(`http://127.0.0.1:${await otherServer(t)}/`);
  await hostile.evaluate("document.cookie = 'taintward=tossed; path=/'");
  for (let cookie = 0; cookie < 20; cookie++) {
    await hostile.evaluate(`document.cookie = 'c${cookie}=${'x'.repeat(1_000)}; path=/'`);
  }
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
});

/** Text that would have an effect if it were interpreted as an element, a script, an address, or a closed attribute. */
const MARKUP = '"><img src=x onerror="document.title=1"><script>document.title=1</script>javascript:alert(1)';

test('markup in names, taints, reasons, and errors is shown as text in every view (XSS)', async (t) => {
  const scene = await openNamed(t, 'prod', MARKUP);
  t.after(() => scene.close());
  const visitor = await Visitor.enter(await browser(), scene.link());
  t.after(() => visitor.leave());
  const { page } = visitor;
  const odd = encodeURIComponent(MARKUP);
  const views: readonly (readonly [string, RegExp])[] = [
    ['#/', /Overview/],
    ['#/pending', /pending">/],
    ['#/nodes', /node">/],
    ['#/history', /gone">/],
    ['#/rules', /stop/i],
    [`#/pod/prod/${odd}/${odd}`, /">/],
    [`#/node/prod/${odd}`, /">/],
    [`#/what-if?taint=${odd}`, /./],
  ];
  for (const [view, shows] of views) {
    await visitor.go(view);
    await page.getByRole('main').getByText(shows).first().waitFor();
    assert.equal(
      await page.locator('img[src="x"], script:not([src]):not([type="importmap"])').count(),
      0,
      view,
    );
    assert.equal(await page.locator('a[href^="javascript:"], [onerror]').count(), 0, view);
    assert.notEqual(await page.title(), '1', view);
  }
});
