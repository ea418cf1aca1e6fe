import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { get } from '#functions/console/page/server.ts';
import { settled } from '#test/world/turns.ts';
import { setGlobals } from './set-globals.ts';

/** Longer than the page waits before it reconnects. */
const RECONNECTED_MS = 5_000;

class FakeEventSource extends EventTarget {
  static readonly CLOSED = 2;
  readyState = 1;

  close(): void {
    this.readyState = FakeEventSource.CLOSED;
  }

  /** Dispatches an event of the browser, or one that the server sent. */
  async receive(name: string, data?: object): Promise<void> {
    this.dispatchEvent(Object.assign(new Event(name), data && { data: JSON.stringify(data) }));
    await settled();
  }
}

/** Starts a page of its own in a visible tab, and returns its connections. `server` answers each request. */
async function page(t: TestContext, server: (path: string) => Response) {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  const sources: FakeEventSource[] = [];
  class EventSource extends FakeEventSource {
    constructor() {
      super();
      sources.push(this);
    }
  }
  const document = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  setGlobals(t, { document, EventSource, fetch: async (path: string) => server(path) });
  const url = `${import.meta.resolve('#functions/console/page/live.ts')}?${encodeURIComponent(t.name)}`;
  const live: typeof import('#functions/console/page/live.ts') = await import(url);
  live.listen();
  await settled();
  const show = (visibilityState: 'visible' | 'hidden') => {
    document.visibilityState = visibilityState;
    document.dispatchEvent(new Event('visibilitychange'));
  };
  return { live, sources, show };
}

const aSession = () => Response.json({ now: 0 });

test('asks nothing while its tab is hidden, and connects again when it becomes visible', async (t) => {
  const requests: string[] = [];
  const { live, sources, show } = await page(t, (path) => {
    requests.push(path);
    return aSession();
  });
  show('hidden');
  t.mock.timers.tick(60_000);
  await settled();
  assert.deepEqual([live.connection.value.state, requests], ['connecting', ['api/session']]);
  assert.deepEqual(
    sources.map(({ readyState }) => readyState),
    [FakeEventSource.CLOSED],
  );
  show('visible');
  assert.equal(sources.length, 2);
});

/** Breaks the connection for good, as an error response does, and waits until the page has tried again. */
async function reject(t: TestContext, source: FakeEventSource | undefined): Promise<void> {
  source?.close();
  await source?.receive('error');
  t.mock.timers.tick(RECONNECTED_MS);
  await settled();
}

test('connects again after an error response, once the server answers', async (t) => {
  const answers = [aSession(), new Response('', { status: 500 }), aSession()];
  const { live, sources } = await page(t, () => answers.shift() ?? aSession());
  await reject(t, sources[0]);
  assert.deepEqual([sources.length, live.connection.value.state], [1, 'lost']);
  t.mock.timers.tick(RECONNECTED_MS);
  await settled();
  assert.equal(sources.length, 2);
});

test('connects again once, although its connection was lost twice', async (t) => {
  const requests: string[] = [];
  const { sources } = await page(t, (path) => {
    requests.push(path);
    return aSession();
  });
  await sources[0]?.receive('error');
  t.mock.timers.tick(1_000);
  await reject(t, sources[0]);
  assert.deepEqual([requests, sources.length], [['api/session', 'api/session'], 2]);
});

for (const status of [401, 403])
  test(`shows why the server rejects its session with ${status}, and connects no more`, async (t) => {
    const answers = [aSession(), Response.json({ error: 'The session ended.' }, { status })];
    const { live, sources, show } = await page(t, () => answers.shift() ?? aSession());
    await reject(t, sources[0]);
    show('visible');
    assert.deepEqual(live.connection.value, { state: 'over', why: 'The session ended.' });
    assert.equal(sources.length, 1);
  });

test('connects no more after the server ended the session', async (t) => {
  const { live, sources, show } = await page(t, aSession);
  await sources[0]?.receive('end', { reason: 'It is late.' });
  show('visible');
  assert.deepEqual(live.connection.value, { state: 'over', why: 'It is late.' });
  assert.deepEqual(
    sources.map(({ readyState }) => readyState),
    [FakeEventSource.CLOSED],
  );
});

test('shows what a server sends whose versions and clock begin anew', async (t) => {
  let answer = { version: 0, total: 0 };
  const { live, sources } = await page(t, (path) =>
    path.startsWith('api/pending') ? Response.json({ ...answer, at: 0, rows: [] }) : aSession(),
  );
  const shown = () => [live.pendingTotal.value, live.pendingVersion.value, live.connection.value.state];
  for (const [at, version, total] of [
    [9_000, 7, 10],
    [5_000, 7, 20],
    [1_000, 1, 30],
  ] as const) {
    answer = { version, total };
    const source = sources.at(-1);
    await source?.receive('open');
    await source?.receive('trouble', { error: 'It reads nothing.' });
    await source?.receive('status', { at });
    assert.equal(live.trouble.value, '');
    await source?.receive('trouble', { error: 'It reads nothing.' });
    await source?.receive('pending', { version, at });
    assert.equal(live.trouble.value, '');
    await source?.receive('time', { at });
    assert.deepEqual([...shown(), live.now.value], [total, version, 'live', at]);
    await reject(t, source);
    assert.equal(live.connection.value.state, 'lost');
  }
  assert.equal(sources.length, 4);
});

test('shows the pods of all clusters, also of clusters that were restored from one backup', async (t) => {
  const rows = ['prod', 'copy'].map((cluster) => ['uid', cluster]);
  const { live, sources } = await page(t, (path) =>
    path.startsWith('api/pending') ? Response.json({ version: 1, total: 2, rows }) : aSession(),
  );
  await sources[0]?.receive('pending', { version: 1, at: 0 });
  assert.deepEqual([...(live.pending.value?.values() ?? [])], rows);
});

test('shows the last known time, and connects again, once a server with an open connection is silent', async (t) => {
  const { live, sources } = await page(t, aSession);
  const [source] = sources;
  await source?.receive('open');
  for (let beats = 0; beats < 4; beats++) {
    await source?.receive('time', { at: 500_000 + Date.now() });
    t.mock.timers.tick(11_000);
  }
  assert.deepEqual([live.connection.value.state, live.now.value], ['live', 544_000]);
  t.mock.timers.tick(4_000);
  assert.deepEqual(
    [live.connection.value.state, live.now.value, live.clock.value],
    ['lost', 533_000, 548_000],
  );
  assert.equal(source?.readyState, FakeEventSource.CLOSED);
  t.mock.timers.tick(RECONNECTED_MS);
  await settled();
  await sources[1]?.receive('open');
  assert.deepEqual([live.connection.value.state, live.staleSince.value], ['live', undefined]);
});

test('counts an event source that never opens as lost', async (t) => {
  const { live } = await page(t, aSession);
  t.mock.timers.tick(15_000);
  assert.equal(live.connection.value.state, 'lost');
});

test('shows the time of the last read while the server reads nothing, and after the session ended', async (t) => {
  const { live, sources } = await page(t, aSession);
  const [source] = sources;
  await source?.receive('open');
  await source?.receive('status', {});
  await source?.receive('time', { at: 10_000 });
  await source?.receive('trouble', { error: 'It reads nothing.' });
  await source?.receive('time', { at: 15_000 });
  assert.deepEqual([live.staleSince.value, live.now.value], [10_000, 10_000]);
  await source?.receive('status', {});
  assert.deepEqual([live.staleSince.value, live.now.value], [undefined, 15_000]);
  await source?.receive('end', { reason: 'It is late.' });
  t.mock.timers.tick(RECONNECTED_MS);
  assert.equal(live.now.value, 15_000);
});

test('shows nothing as current when a hidden tab becomes visible, until it is connected', async (t) => {
  const { live, sources, show } = await page(t, aSession);
  await sources[0]?.receive('open');
  await sources[0]?.receive('status', {});
  show('hidden');
  t.mock.timers.tick(60_000);
  show('visible');
  assert.equal(live.staleSince.value, 0);
  await sources[1]?.receive('open');
  assert.equal(live.staleSince.value, undefined);
});

test('a request to a server that never answers ends with a sentence', async (t) => {
  const limit = new AbortController();
  t.mock.method(AbortSignal, 'timeout', () => limit.signal);
  const fetch = (_: string, { signal }: RequestInit) =>
    new Promise((_resolve, fail) => signal?.addEventListener('abort', () => fail(signal.reason)));
  setGlobals(t, { fetch });
  const request = get('GET api/session', {});
  limit.abort(new DOMException('', 'TimeoutError'));
  await assert.rejects(request, { name: 'ServerError', status: 0 });
});

test('asks for the session again when an act follows a failed request for it', async (t) => {
  const answers = [
    new Response('', { status: 500 }),
    Response.json({ token: 't' }),
    Response.json({ message: 'done' }),
  ];
  const paths: string[] = [];
  setGlobals(t, {
    fetch: async (path: string) => {
      paths.push(path);
      return answers.shift() ?? assert.fail(path);
    },
  });
  const url = `${import.meta.resolve('#functions/console/page/server.ts')}?again`;
  const { post }: typeof import('#functions/console/page/server.ts') = await import(url);
  const act = () => post('POST api/demo/taint', { node: 'n', taint: 'a:NoExecute' });
  await assert.rejects(act(), { name: 'ServerError' });
  assert.deepEqual(await act(), { message: 'done' });
  assert.deepEqual(paths, ['api/session', 'api/session', 'api/demo/taint']);
});
