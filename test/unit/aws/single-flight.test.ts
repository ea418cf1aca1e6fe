import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SingleFlight } from '#shared/aws/single-flight.ts';

/** Returns passes that the test ends. */
function passes() {
  const started: { end: () => void; fail: (error: Error) => void }[] = [];
  const pass = () =>
    new Promise<void>((resolve, reject) => {
      started.push({ end: resolve, fail: reject });
    });
  return { started, pass };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('callers share the next pass while a pass runs', async () => {
  const flight = new SingleFlight<void>();
  const { started, pass } = passes();
  const first = flight.run('n1', pass);
  const later = [flight.run('n1', pass), flight.run('n1', pass), flight.run('n1', pass)];
  await turn();
  assert.equal(started.length, 1);
  started[0]?.end();
  await first;
  await turn();
  assert.equal(started.length, 2);
  const last = flight.run('n1', pass);
  started[1]?.end();
  await Promise.all(later);
  await turn();
  assert.equal(started.length, 3);
  started[2]?.end();
  await last;
});

test('a pass starts after the requests of all callers that share it', async () => {
  const flight = new SingleFlight<void>();
  const requested: number[] = [];
  const saw: number[] = [];
  const request = (number: number) => {
    requested.push(number);
    return flight.run('n1', async () => {
      await turn();
      saw.push(requested.length);
    });
  };
  await Promise.all([1, 2, 3].map(request));
  await request(4);
  assert.deepEqual(saw, [3, 3, 4]);
});

test('passes of different keys do not wait for each other', async () => {
  const flight = new SingleFlight<void>();
  const { started, pass } = passes();
  const both = [flight.run('n1', pass), flight.run('n2', pass)];
  assert.equal(started.length, 2);
  for (const { end } of started) end();
  await Promise.all(both);
});

test('a failed pass rejects for all callers that share it, and for no later caller', async () => {
  const flight = new SingleFlight<void>();
  const { started, pass } = passes();
  const first = flight.run('n1', pass);
  const sharing = [flight.run('n1', pass), flight.run('n1', pass)];
  started[0]?.fail(new Error('first'));
  await assert.rejects(first, /first/);
  await turn();
  started[1]?.fail(new Error('second'));
  for (const each of sharing) await assert.rejects(each, /second/);
  const third = flight.run('n1', pass);
  started[2]?.end();
  await third;
});

test('no second pass starts between the end of a pass and the start of the next', async () => {
  const flight = new SingleFlight<void>();
  let running = 0;
  const pass = async () => {
    running += 1;
    assert.equal(running, 1);
    await turn();
    running -= 1;
  };
  const all: Promise<void>[] = [];
  const request = () => all.push(flight.run('n1', pass));
  request();
  request();
  for (let turns = 0; turns < 20; turns++) {
    void Promise.resolve().then(request);
    if (turns % 3 === 0) await turn();
    else await undefined;
  }
  await Promise.all(all);
});

test('the next pass starts as soon as the running pass allows it', async () => {
  const flight = new SingleFlight<void>();
  const { promise: rest, resolve: end } = Promise.withResolvers<void>();
  const first = flight.run('n1', async (free) => {
    await turn();
    free();
    await rest;
  });
  await flight.run('n1', async () => undefined);
  end();
  await first;
});
