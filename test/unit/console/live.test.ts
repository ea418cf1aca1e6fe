import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request, ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import type { LiveEvents } from '#shared/console/api.ts';
import { FleetView } from '#shared/console/fleet-view.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { aNode, anEnding, aRecord } from '#test/contracts/partition-builders.ts';
import { assertMatches } from '#test/contracts/published-schemas.ts';
import { inNoTime } from '#test/world/driven-timers.ts';
import { until } from '#test/world/turns.ts';
import { servedConsole } from './served-console.ts';

const REF = { cluster: clusterName('prod'), node: nodeName('node-1') };

type ConsoleEvent = {
  readonly [Event in keyof LiveEvents]: { readonly event: Event; readonly data: LiveEvents[Event] };
}[keyof LiveEvents];

/** Subscribes to live events as the page does. */
async function listener(port: string, path: string, headers: Record<string, string>) {
  const sent = request({ host: '127.0.0.1', port, path: `${path}api/live`, headers, agent: false }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const events = eventsIn(response);
  /** Returns the next event of a kind and skips events of other kinds. */
  const next = async <Event extends keyof LiveEvents>(event: Event): Promise<LiveEvents[Event]> => {
    for (;;) {
      const { value, done } = await events.next();
      if (done) throw new Error('it ended');
      assertMatches('console', { [value.event]: value.data });
      if (value.event === event) return value.data as LiveEvents[Event];
    }
  };
  return { response, next, leave: () => sent.destroy() };
}

async function* eventsIn(response: IncomingMessage): AsyncGenerator<ConsoleEvent, void> {
  let text = '';
  for await (const chunk of response as AsyncIterable<Buffer>) {
    const parts = (text + chunk.toString()).split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const found = /^event: (\S+)\ndata: (.*)$/.exec(part);
      if (found) yield { event: found[1], data: JSON.parse(found[2] ?? '') } as ConsoleEvent;
    }
  }
}

async function listening(t: TestContext) {
  const served = await servedConsole(t);
  const { store, clock } = served;
  const entered = await served.enter();
  const listen = async () => {
    const joined = await listener(served.port, entered.path, entered.own);
    t.after(joined.leave);
    return joined;
  };
  let revision = 0;
  const schedule = async (...records: EvictionRecord[]) => {
    await store.commit(
      REF,
      revision++,
      { node: aNode(), schedule: records, end: [], live: true },
      clock.now(),
    );
    // Expires the cached read.
    await clock.advanceTo(clock.now() + 60_000);
  };
  const end = async (record: EvictionRecord) => {
    await store.end(REF, [anEnding(record)], clock.now());
    revision++;
    await clock.advanceTo(clock.now() + 60_000);
  };
  return { ...served, ...entered, listen, schedule, end };
}

test('sends the current state and then only its changes', (t) =>
  inNoTime(t, async () => {
    const { listen, ask, schedule, end } = await listening(t);
    const [one, other] = [aRecord({ name: 'one' }), aRecord({ name: 'other' })];
    await schedule(one);
    const { response, next } = await listen();
    assert.equal(response.headers['content-type'], 'text/event-stream');
    assert.equal((await next('status')).clusters[0]?.pending, 1);
    const first = await next('pending');
    assert.equal(first.version, (await ask('GET api/pending', {})).version);
    await schedule(other);
    const added = await next('pending');
    assert.ok(added.version > first.version);
    await end(one);
    const gone = await next('pending');
    assert.ok(gone.version > added.version);
    const { version, rows } = await ask('GET api/pending', {});
    assert.deepEqual([version, rows.map(([, , , , name]) => name)], [gone.version, ['other']]);
  }));

test('sends its time every few seconds, also while nothing changes', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { listen, clock } = await listening(t);
  const { next } = await listen();
  for (let beats = 0; beats < 3; beats++) {
    assert.deepEqual(await next('time'), { at: clock.now() });
    await clock.advanceTo(clock.now() + 5_000);
    t.mock.timers.tick(5_000);
  }
});

test('keeps the version while nothing changes', (t) =>
  inNoTime(t, async () => {
    const { ask, schedule, clock } = await listening(t);
    await schedule(aRecord());
    const { version } = await ask('GET api/pending', {});
    await clock.advanceTo(clock.now() + 60_000);
    assert.equal((await ask('GET api/pending', {})).version, version);
  }));

test('sends a status once while nothing but the time changes', (t) =>
  inNoTime(t, async () => {
    const { listen, clock } = await listening(t);
    await (await listen()).next('status');
    const reads = t.mock.method(FleetView.prototype, 'read').mock;
    const passMinute = async () => {
      await clock.advanceTo(clock.now() + 60_000);
      const before = reads.callCount();
      await until(() => reads.callCount() > before + 2);
    };
    // What the first read began to ask is known.
    await passMinute();
    const sent = t.mock.method(ServerResponse.prototype, 'write').mock;
    await passMinute();
    const texts = sent.calls.map(({ arguments: [text] }) => String(text));
    assert.deepEqual(
      texts.filter((text) => text.startsWith('event: status')),
      [],
    );
  }));

test('shares one reader between all subscribers', (t) =>
  inNoTime(t, async () => {
    const { listen, fleet, schedule } = await listening(t);
    await schedule(aRecord());
    const load = t.mock.method(fleet.store, 'load');
    const listeners = [await listen(), await listen(), await listen()];
    for (const { next } of listeners) await next('pending');
    const before = load.mock.callCount();
    await schedule(aRecord());
    await Promise.all(listeners.map(({ next }) => next('pending')));
    assert.equal(load.mock.callCount() - before, 1);
  }));

test('ends with the session and sends the reason', (t) =>
  inNoTime(t, async () => {
    const { listen, console } = await listening(t);
    const { next } = await listen();
    await next('status');
    const closing = console.close();
    assert.deepEqual(await next('end'), {
      reason: 'To open the console again, run taintward console, or type console at npm start.',
    });
    await closing;
  }));

test('reports a failed read, and then the next one, even if nothing changed', (t) =>
  inNoTime(t, async () => {
    const { listen, fleet, clock } = await listening(t);
    const { next } = await listen();
    await next('pending');
    const broken = t.mock.method(fleet, 'clusters', async () => {
      throw new Error('the table takes no more for now');
    });
    await clock.advanceTo(clock.now() + 60_000);
    assert.deepEqual(await next('trouble'), { error: 'the table takes no more for now' });
    broken.mock.restore();
    await next('pending');
    await next('status');
  }));

test('reports a read that does not end', (t) =>
  inNoTime(t, async () => {
    const { listen, fleet, clock } = await listening(t);
    const { next } = await listen();
    await next('pending');
    t.mock.method(fleet, 'clusters', () => new Promise(() => undefined));
    await clock.advanceTo(clock.now() + 60_000);
    assert.deepEqual(await next('trouble'), { error: 'No answer from the store within 10s.' });
  }));

test('sends changes to a subscriber after all earlier ones disconnected', (t) =>
  inNoTime(t, async () => {
    const { listen, fleet, schedule } = await listening(t);
    const first = await listen();
    await first.next('pending');
    first.leave();
    const reads = t.mock.method(fleet, 'clusters');
    for (
      let before = -1;
      before !== reads.mock.callCount();
      await new Promise((done) => setTimeout(done, 3_000))
    )
      before = reads.mock.callCount();
    const { next } = await listen();
    const { version } = await next('pending');
    await schedule(aRecord({ name: 'new' }));
    assert.ok((await next('pending')).version > version);
  }));

test('limits the number of subscribers', (t) =>
  inNoTime(t, async () => {
    const { listen } = await listening(t);
    for (let count = 0; count < 32; count++) assert.equal((await listen()).response.statusCode, 200);
    assert.equal((await listen()).response.statusCode, 503);
  }));
