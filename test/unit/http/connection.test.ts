import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Connection, TICKS_TO_ASK, TICKS_TO_BEGIN } from '#shared/http/connection.ts';

/** A connection without a client, and requests on it as the parser announces them. */
function connected(t: TestContext, socket = new Socket()) {
  const connection = new Connection(socket, 60);
  t.after(() => connection.destroy());
  const begun: string[] = [];
  const announce = (name: string): EventEmitter => {
    const response = new EventEmitter();
    connection.serve({ complete: true } as IncomingMessage, response as ServerResponse, () =>
      begun.push(name),
    );
    return response;
  };
  return { connection, begun, announce };
}

describe('a connection', () => {
  test('begins a request that arrives directly after the previous answer', async (t) => {
    const { begun, announce } = connected(t);
    announce('first').emit('close');
    announce('second');
    for (let turns = 0; turns < 3; turns++) await turn();
    assert.deepEqual(begun, ['first', 'second']);
  });

  test('begins waiting requests in order, once each', async (t) => {
    const { begun, announce } = connected(t);
    const responses = ['first', 'second', 'third'].map(announce);
    assert.deepEqual(begun, ['first']);
    for (const response of responses) {
      response.emit('close');
      for (let turns = 0; turns < 3; turns++) await turn();
    }
    assert.deepEqual(begun, ['first', 'second', 'third']);
  });

  test('waits as long as ever for the next request after an answer that its reader took slowly', (t) => {
    const { connection, announce } = connected(t, new Duplex({ read() {}, write() {} }) as Socket);
    const response = announce('first');
    connection.write('answer');
    const ticks = (count: number) => Array.from({ length: count }, () => connection.tick());
    assert.ok(!ticks(TICKS_TO_ASK).includes(true));
    response.emit('close');
    assert.deepEqual(ticks(TICKS_TO_BEGIN + 1), [...Array(TICKS_TO_BEGIN).fill(false), true]);
  });

  test('yields to other connections before its next request', async (t) => {
    const { begun, announce } = connected(t);
    announce('first').emit('close');
    announce('second');
    assert.deepEqual(begun, ['first']);
    await turn();
    assert.deepEqual(begun, ['first', 'second']);
  });
});
