import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Connection } from '#shared/http/connection.ts';

/** A connection without a client, and requests on it as the parser announces them. */
function connected(t: TestContext) {
  const connection = new Connection(new Socket(), 60);
  t.after(() => connection.destroy());
  const begun: string[] = [];
  const announce = (name: string): EventEmitter => {
    const response = new EventEmitter();
    connection.serve({ complete: true } as IncomingMessage, response as ServerResponse, () =>
      begun.push(name),
    );
    return response;
  };
  return { begun, announce };
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

  test('yields to other connections before its next request', async (t) => {
    const { begun, announce } = connected(t);
    announce('first').emit('close');
    announce('second');
    assert.deepEqual(begun, ['first']);
    await turn();
    assert.deepEqual(begun, ['first', 'second']);
  });
});
