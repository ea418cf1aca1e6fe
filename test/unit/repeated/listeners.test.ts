import assert from 'node:assert/strict';
import { EventEmitter, getEventListeners, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { FleetView, Seen } from '#shared/console/fleet-view.ts';
import { Live } from '#shared/console/live.ts';
import { startConsole } from '#shared/console/server.ts';
import { listenOnSocket } from '#shared/operations/fleet/state-socket.ts';
import { systemClock } from '#shared/time/clock.ts';
import { onStopSignal } from '#shared/time/stopping.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { givesBack } from '#test/world/given-back.ts';
import { settled } from '#test/world/turns.ts';

/** A response that only records what is written, and that the test closes. */
const response = () =>
  Object.assign(new EventEmitter(), {
    destroyed: false,
    writableLength: 0,
    writeHead: () => undefined,
    write: () => true,
    end: () => undefined,
    destroy: () => undefined,
  });

test('a hundred listeners that left or whose session ended keep no other from joining', () =>
  givesBack(async () => {
    let fails = false;
    const seen = { version: 1, at: 0, clusters: [], pending: [], unknown: [] } as unknown as Seen;
    const read = async () => {
      if (fails) throw new Error('the table takes no more for now');
      return seen;
    };
    const view = { read, listen: () => undefined } as unknown as FleetView;
    const live = new Live({ view, clock: systemClock, readMs: 1 });
    const session = new AbortController();
    const join = async () => {
      const joining = response();
      return (await live.join(joining as unknown as ServerResponse, session.signal)) ? joining : undefined;
    };
    for (let nth = 0; nth < 100; nth++) {
      const joined = await join();
      assert.ok(joined, `listener ${nth}`);
      fails = nth % 3 === 0;
      await settled();
      fails = false;
      if (nth % 2 === 0) joined.emit('close');
      else {
        const ending = new AbortController();
        const other = response();
        await live.join(other as unknown as ServerResponse, ending.signal);
        ending.abort();
        joined.emit('close');
      }
    }
    assert.equal(getEventListeners(session.signal, 'abort').length, 0);
    const all = await Promise.all(Array.from({ length: 40 }, join));
    const joined = all.flatMap((each) => each ?? []);
    assert.equal(joined.length, 32);
    for (const each of joined) each.emit('close');
  }));

test('listeners that join during one read are limited, and may have left by its end', async () => {
  const seen = { version: 1, at: 0, clusters: [], pending: [], unknown: [] } as unknown as Seen;
  const { promise, resolve: answer } = Promise.withResolvers<Seen>();
  const view = { read: () => promise, listen: () => undefined } as unknown as FleetView;
  const live = new Live({ view, clock: systemClock, readMs: 0 });
  const [session, ended] = [new AbortController(), AbortSignal.abort()];
  const left = Object.assign(response(), { destroyed: true });
  const all = [left, ...Array.from({ length: 40 }, response)];
  const joining = all.map((member, index) =>
    live.join(member as unknown as ServerResponse, index === 1 ? ended : session.signal),
  );
  answer(seen);
  const joined = await Promise.all(joining);
  assert.equal(joined.filter(Boolean).length, 2 + 32, 'two had left, and take no place');
  assert.equal(getEventListeners(session.signal, 'abort').length, 32);
  for (const each of all) each.emit('close');
});

test('servers that are opened and closed several times, with callers that stay, leave no socket and no timer', () =>
  givesBack(async () => {
    const dir = mkdtempSync(join(tmpdir(), 'listeners-'));
    const log = recordingLog();
    for (let nth = 0; nth < 5; nth++) {
      const console = await startConsole({
        port: 0,
        portSetBy: '--port',
        clock: systemClock,
        log,
        api: async () => assert.fail('no session asks'),
      });
      const socket = await listenOnSocket(join(dir, 's'), (_, answer) => void answer.end(), log);
      const callers = [connect(Number(new URL(console.address).port), '127.0.0.1'), connect(join(dir, 's'))];
      await Promise.all(callers.map((caller) => once(caller, 'connect')));
      for (const caller of callers) {
        caller.on('error', () => undefined);
        caller.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
      }
      await settled();
      const closed = callers.map((caller) => once(caller.resume(), 'close'));
      await Promise.all([console.close(), socket?.close(), ...closed]);
    }
    rmSync(dir, { recursive: true });
  }));

test('a request to stop is heard once, and its listeners are removed a second later', (context) => {
  context.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  return givesBack(async () => {
    for (let nth = 0; nth < 20; nth++) {
      const stop = context.mock.fn();
      onStopSignal(stop);
      process.emit('SIGHUP');
      process.emit('SIGTERM');
      assert.equal(stop.mock.callCount(), 1);
      context.mock.timers.tick(1_000);
    }
  });
});
