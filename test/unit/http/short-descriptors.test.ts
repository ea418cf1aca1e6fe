import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { until } from '#test/world/turns.ts';
import { get, served } from './served.ts';

/** Makes every socket of this process appear to have one of the last descriptors. */
function shortOfDescriptors(context: TestContext, { socket }: { readonly socket: Socket }): void {
  const handles: object = Object.getPrototypeOf((socket as unknown as { readonly _handle: object })._handle);
  const before = Object.getOwnPropertyDescriptor(handles, 'fd');
  Object.defineProperty(handles, 'fd', { configurable: true, get: () => 2 ** 31 - 1 });
  context.after(() => {
    if (before) Object.defineProperty(handles, 'fd', before);
    else Reflect.deleteProperty(handles, 'fd');
  });
}

const options = { skip: process.platform !== 'linux' && 'only Linux counts descriptors so' };

test(
  'closes an idle connection for a new caller when descriptors run short, and logs it',
  options,
  async (context) => {
    const { client, log } = await served(context);
    const idle = await client(get('/idle'));
    await idle.received(/\/idle\n$/);
    shortOfDescriptors(context, idle);
    const fresh = await client(get('/fresh'));
    await fresh.received(/\/fresh\n$/);
    await until(idle.isClosed);
    assert.deepEqual(
      log.lines.map(({ event }) => event),
      ['listener.accept-failed'],
    );
  },
);

test(
  'rejects a new caller when descriptors run short and no connection is idle',
  options,
  async (context) => {
    const answers: (() => void)[] = [];
    const { client } = await served(context, {
      serve: (_, response, { url }) => {
        answers.push(() => response.end(`${url.pathname}\n`));
      },
    });
    const busy = await client(get('/busy'));
    await until(() => answers.length > 0);
    shortOfDescriptors(context, busy);
    const fresh = await client();
    await until(fresh.isClosed);
    answers[0]?.();
    await busy.received(/\/busy\n$/);
  },
);
