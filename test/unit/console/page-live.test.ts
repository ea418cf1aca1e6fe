import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
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
}

/** Starts a page of its own in a visible tab, and returns its connections. `server` answers each request. */
async function page(t: TestContext, server: () => Response) {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const sources: FakeEventSource[] = [];
  class EventSource extends FakeEventSource {
    constructor() {
      super();
      sources.push(this);
    }
  }
  const document = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  setGlobals(t, { document, EventSource, fetch: async () => server() });
  const url = `${import.meta.resolve('#functions/console/page/live.ts')}?${encodeURIComponent(t.name)}`;
  const { listen } = await import(url);
  listen();
  await settled();
  const show = (visibilityState: 'visible' | 'hidden') => {
    document.visibilityState = visibilityState;
    document.dispatchEvent(new Event('visibilitychange'));
  };
  return { sources, show };
}

const aSession = () => Response.json({ now: 0 });

test('connects again when a hidden tab becomes visible', async (t) => {
  const { sources, show } = await page(t, aSession);
  show('hidden');
  assert.deepEqual(
    sources.map(({ readyState }) => readyState),
    [FakeEventSource.CLOSED],
  );
  show('visible');
  assert.equal(sources.length, 2);
});

test('connects again after an error response, once the server answers', async (t) => {
  const { sources } = await page(t, aSession);
  sources[0]?.close();
  sources[0]?.dispatchEvent(new Event('error'));
  assert.equal(sources.length, 1);
  t.mock.timers.tick(RECONNECTED_MS);
  await settled();
  assert.equal(sources.length, 2);
});
