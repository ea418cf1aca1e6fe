import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stopAgent } from '#functions/agent/stop-agent.ts';
import { settled } from '#test/world/turns.ts';

test('a stopping agent posts the Events of its last evictions, and waits for them', async () => {
  const relay = Promise.withResolvers<void>();
  const evictions = Promise.withResolvers<void>();
  const events = Promise.withResolvers<void>();
  const steps: string[] = [];
  const begin = (name: string, { promise }: PromiseWithResolvers<void>) => {
    return () => {
      steps.push(name);
      return promise;
    };
  };
  const stopped = stopAgent({
    relay: begin('relay', relay),
    evictions: begin('evictions', evictions),
    events: begin('events', events),
  }).then(() => steps.push('stopped'));
  relay.resolve();
  await settled();
  assert.deepEqual(steps, ['relay', 'evictions']);
  evictions.resolve();
  await settled();
  assert.deepEqual(steps, ['relay', 'evictions', 'events']);
  events.resolve();
  await stopped;
  assert.deepEqual(steps, ['relay', 'evictions', 'events', 'stopped']);
});
