import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { Server } from 'node:net';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openListener, TICKS_BETWEEN_REPORTS } from '#shared/http/listener.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { settled, until } from '#test/world/turns.ts';
import { type Client, clientOf, get, served } from './served.ts';

describe('invalid requests', () => {
  for (const [what, text, status] of [
    ['a target that is no URL', get('//'), 400],
    ['another one', get('http://['), 400],
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['no Host header', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['5 KiB of headers', get('/', `x: ${'x'.repeat(5 * 1024)}\r\n`), 431],
    ['two lengths', get('/', 'content-length: 1\r\ncontent-length: 2\r\n'), 400],
    ['the name of another server', 'GET / HTTP/1.1\r\nhost: rebound.example:80\r\n\r\n', 421],
  ] as const) {
    test(`${what}: answers ${status} in a sentence and serves the next caller`, async (context) => {
      const { requests, client } = await served(context);
      const refused = await client(text);
      await refused.received(new RegExp(`^HTTP/1.1 ${status} .*\\r\\n\\r\\n.*[A-Z][^\\r\\n]+\\.\\n`, 's'));
      assert.deepEqual(requests, []);
      await (await client(get('/next'))).received(/\/next\n/);
    });
  }

  for (const [what, text] of [
    ['a request of HTTP/1.0, which has no Host header', 'GET /served HTTP/1.0\r\n\r\n'],
    ['a request with an unknown expectation', get('/served', 'expect: a-miracle\r\n')],
  ] as const)
    test(`answers ${what}`, async (context) => {
      const { client } = await served(context);
      await (await client(text)).received(/^HTTP\/1.1 200 [\s\S]*\/served\n/);
    });

  test('answers 413 to chunk extensions that are too long', async (context) => {
    const { client } = await served(context, { serve: (request) => void request.resume() });
    const post = 'POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n';
    const refused = await client(`${post}1;${'x'.repeat(20_000)}`);
    await refused.received(/^HTTP\/1.1 413 [\s\S]*The chunk extensions are too long\.\n/);
    await until(refused.isClosed);
  });

  test('closes the connection of no HTTP without an answer while it answers a request', async (context) => {
    const { requests, client } = await served(context, { serve: () => void requests.push('/') });
    const caller = await client(`${get('/')}hello\r\n\r\n`);
    await until(caller.isClosed);
    assert.deepEqual([requests, caller.text()], [['/'], '']);
  });

  test('answers 500 after an error, logs the error, and serves the next request', async (context) => {
    const { log, client } = await served(context, {
      serve: (_, response, { url }) => {
        if (url.pathname === '/fails') throw new Error('it broke');
        response.end('whole\n');
      },
    });
    const caller = await client(get('/fails') + get('/'));
    await caller.received(/^HTTP\/1.1 500 [\s\S]*The request failed[\s\S]*HTTP\/1.1 200 [\s\S]*whole/);
    assert.deepEqual(
      log.lines.map(({ event, fields }) => [event, fields['listener'], String(fields['error'])]),
      [['listener.request-failed', 'test', 'Error: it broke']],
    );
  });

  test('closes the connection after an error within an answer, which stays incomplete, and logs it', async (context) => {
    const received = Promise.withResolvers<void>();
    const { log, client } = await served(context, {
      serve: async (_, response, { know }) => {
        response.write('half');
        know();
        await received.promise;
        throw new Error('it broke');
      },
    });
    const caller = await client(get('/'));
    await caller.received(/half\r\n$/);
    received.resolve();
    await until(caller.isClosed);
    assert.match(caller.text(), /half\r\n$/);
    assert.deepEqual(
      log.lines.map(({ fields }) => String(fields['error'])),
      ['Error: it broke'],
    );
  });

  test('sends the given headers with every answer, including rejections', async (context) => {
    const { client } = await served(context, { headers: { 'x-content-type-options': 'nosniff' } });
    for (const path of ['/', '//']) await (await client(get(path))).received(/nosniff/);
  });
});

describe('pipelined requests', () => {
  test('are served one after the other, in order', async (context) => {
    const pending: (() => void)[] = [];
    const { client } = await served(context, {
      serve: (_, response, { url }) => {
        pending.push(() => response.end(`${url.pathname}\n`));
      },
    });
    const caller = await client([1, 2, 3].map((number) => get(`/${number}`)).join(''));
    for (const number of [1, 2, 3]) {
      await until(() => pending.length > 0);
      await settled();
      assert.equal(pending.length, 1, 'one is under way');
      pending.pop()?.();
      await caller.received(new RegExp(`/${number}\n`));
    }
  });

  test('begin at most once per connection and event loop turn', async (context) => {
    let begun = 0;
    const { client } = await served(context, {
      serve: (_, response) => {
        begun += 1;
        response.end();
      },
    });
    const callers = await Promise.all(Array.from({ length: 8 }, () => client(get('/').repeat(1_000))));
    let most = 0;
    for (let before = 0; begun < 8_000; before = begun) {
      await nextTurn();
      most = Math.max(most, begun - before);
    }
    assert.ok(most <= 2 * callers.length, `${most} requests in a turn`);
  });

  test('remain unparsed while another is in progress', async (context) => {
    let first: ServerResponse | undefined;
    const { client, requests } = await served(context, {
      serve: (_, response, { url }) => {
        requests.push(url.pathname);
        if (url.pathname === '/slow') first = response;
        else response.end();
      },
    });
    const caller = await client(get('/slow') + get('/').repeat(500_000));
    await until(() => first !== undefined);
    await settled();
    assert.deepEqual(requests, ['/slow']);
    // The remaining requests are still at the client, because neither side reads.
    assert.ok(caller.socket.writableLength > 0);
    assert.equal(caller.text(), '');
    first?.end();
    await until(() => requests.length > 1_000);
  });

  test('do not block reading a body in many pieces', async (context) => {
    const { client } = await served(context, {
      serve: async (request, response) => {
        let bytes = 0;
        for await (const chunk of request) bytes += (chunk as Buffer).length;
        response.end(`${bytes} bytes\n`);
      },
    });
    const body = 'x'.repeat(1_000_000);
    const post = `POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    await (await client(post + post)).received(/1000000 bytes[\s\S]*1000000 bytes/);
  });
});

describe('a connection', () => {
  test('is closed when it has been idle for two checks', async (context) => {
    const { client, pass } = await served(context);
    const caller = await client();
    await pass(2);
    assert.equal(caller.isClosed(), false);
    await pass(1);
    await until(caller.isClosed);
  });

  test('stays idle for longer once its caller is authenticated', async (context) => {
    const { client, pass } = await served(context, {
      idleSeconds: 10,
      serve: (_, response, { know }) => {
        know();
        response.end('known\n');
      },
    });
    const caller = await client(get('/'));
    await caller.received(/keep-alive: timeout=10\r\n[\s\S]*known/i);
    await pass(10);
    assert.equal(caller.isClosed(), false);
    await pass(1);
    await until(caller.isClosed);
  });

  for (const [caller, isKnown, seconds] of [
    ['unknown caller', false, 2],
    ['authenticated caller', true, 60],
  ] as const)
    test(`of an ${caller} is announced to stay idle for ${seconds} s by default`, async (context) => {
      const { client } = await served(context, {
        serve: (_, response, { know }) => {
          if (isKnown) know();
          response.end('answered\n');
        },
      });
      const opened = await client(get('/'));
      await opened.received(new RegExp(`keep-alive: timeout=${seconds}\r\n[\\s\\S]*answered`, 'i'));
    });

  for (const [what, text] of [
    ['headers', 'GET / HTTP/1.1\r\nhost: localhost\r\n'],
    ['a body', 'POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n'],
  ] as const) {
    test(`is closed when ${what} take longer than five checks, byte by byte or not at all`, async (context) => {
      const { client, pass } = await served(context, {
        serve: async (request, response) => {
          for await (const _ of request);
          response.end();
        },
      });
      const [silent, slow] = [await client(text), await client(text)];
      for (let time = 0; time < 5; time++) {
        slow.socket.write('x');
        await pass(1);
      }
      assert.deepEqual([silent.isClosed(), slow.isClosed()], [false, false]);
      await pass(1);
      await until(() => silent.isClosed() && slow.isClosed());
    });
  }

  test('is kept while its answer lasts, and its answer ends when the caller disconnects', async (context) => {
    let streaming: ServerResponse | undefined;
    let hasLeft = false;
    const { client, pass } = await served(context, {
      serve: (_, response) => {
        streaming = response;
        response.once('close', () => {
          hasLeft = true;
        });
        response.write('begun\n');
      },
    });
    const caller = await client(get('/'));
    await caller.received(/begun/);
    await pass(300);
    assert.equal(caller.isClosed(), false);
    streaming?.write('later\n');
    await caller.received(/later/);
    caller.socket.destroy();
    await until(() => hasLeft);
  });

  test('is closed when its caller reads nothing of an answer for ten checks', async (context) => {
    let hasLeft = false;
    const { client, pass } = await served(context, {
      serve: (_, response) => {
        response.once('close', () => {
          hasLeft = true;
        });
        response.end('x'.repeat(50_000_000));
      },
    });
    const caller = await client();
    caller.socket.pause();
    caller.socket.write(get('/'));
    await pass(13);
    await until(() => hasLeft);
  });
});

describe('when all connection slots are taken', () => {
  test('closes the connection that has been idle longest for a new one', async (context) => {
    const { client } = await served(context);
    const idle: Client[] = [];
    for (let number = 0; number < 64; number++) idle.push(await client());
    await settled();
    await (await client(get('/new'))).received(/\/new/);
    await until(() => idle[0]?.isClosed() === true);
    assert.equal(
      idle.findIndex(({ isClosed }) => !isClosed()),
      1,
    );
  });

  test('closes the connection with the oldest last answer, not the oldest connection', async (context) => {
    const { client } = await served(context, { connections: 2 });
    const first = await client(get('/one'));
    await first.received(/\/one\n/);
    const second = await client(get('/two'));
    await second.received(/\/two\n/);
    first.socket.write(get('/three'));
    await first.received(/\/three\n/);
    await settled();
    await (await client(get('/new'))).received(/\/new/);
    await until(() => first.isClosed() || second.isClosed());
    assert.deepEqual([first.isClosed(), second.isClosed()], [false, true]);
  });

  test('rejects a new connection while every other is being answered', async (context) => {
    const answering: ServerResponse[] = [];
    const { client } = await served(context, {
      connections: 4,
      serve: (_, response) => {
        answering.push(response);
      },
    });
    const busy = [];
    for (let number = 0; number < 4; number++) busy.push(await client(get('/')));
    await until(() => answering.length === 4);
    await until((await client(get('/'))).isClosed);
    answering[0]?.end('done\n');
    await busy[0]?.received(/done/);
    await settled();
    await client(get('/'));
    await until(() => answering.length === 5);
  });

  test('reserves the slots of authenticated callers from unauthenticated ones', async (context) => {
    const answering: ServerResponse[] = [];
    const { client } = await served(context, {
      connections: 2,
      forKnown: 1,
      serve: (_, response) => {
        answering.push(response);
      },
    });
    await client(get('/'));
    await until(() => answering.length === 1);
    await until((await client(get('/'))).isClosed);
    assert.equal(answering.length, 1);
  });

  test('admits new callers although earlier callers keep sending requests', async (context) => {
    const { client } = await served(context, {
      connections: 4,
      serve: (_, response, { url }) => {
        if (url.pathname !== '/again') response.end(`${url.pathname}\n`);
      },
    });
    const insistent: Client[] = [];
    for (let number = 0; number < 4; number++) insistent.push(await client(get('/once') + get('/again')));
    for (const { received } of insistent) await received(/once/);
    await settled();
    await (await client(get('/new'))).received(/new/);
    await until(() => insistent.some(({ isClosed }) => isClosed()));
    assert.deepEqual(
      insistent.map(({ isClosed }) => isClosed()),
      [false, false, false, true],
    );
  });

  test('a thousand unauthenticated callers take no slot of an authenticated one and leave slots to others like them', async (context) => {
    const { client } = await served(context, {
      forKnown: 16,
      serve: (_, response, { url, know }) => {
        if (url.pathname === '/known') know();
        response.end(`${url.pathname}\n`);
      },
    });
    const known = [];
    for (let number = 0; number < 16; number++) {
      const caller = await client(get('/known'));
      await caller.received(/known/);
      known.push(caller);
    }
    const strangers = [];
    for (let number = 0; number < 1_000; number++) strangers.push(await client());
    await settled();
    assert.ok(strangers.filter(({ isClosed }) => !isClosed()).length <= 48);
    assert.ok(known.every(({ isClosed }) => !isClosed()));
    const again = await client(get('/known'));
    await again.received(/known/);
    for (const { socket, received } of known) {
      socket.write(get('/still'));
      await received(/still/);
    }
  });
});

test('reports errors of accepting once a minute and serves the next caller', async (context) => {
  const listen = context.mock.method(Server.prototype, 'listen');
  const { client, log, pass } = await served(context);
  const server = listen.mock.calls[0]?.this as Server;
  // The system had no free file descriptor for two callers.
  const error = Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' });
  server.emit('error', error);
  server.emit('error', error);
  assert.deepEqual(log.lines, [
    { level: 'error', event: 'listener.accept-failed', fields: { listener: 'test', error } },
  ]);
  await (await client(get('/next'))).received(/\/next\n/);
  await pass(TICKS_BETWEEN_REPORTS);
  server.emit('error', error);
  assert.equal(log.lines.length, 2);
});

test('ends its checks when it stops', async (context) => {
  const started = context.mock.method(globalThis, 'setInterval');
  const ended = context.mock.method(globalThis, 'clearInterval');
  const at = { host: '127.0.0.1', port: 0 };
  const listener = await openListener({ name: 'test', at, log: recordingLog(), serve: () => undefined });
  await listener.close();
  const [checks] = started.mock.calls;
  assert.ok(checks);
  assert.deepEqual(
    ended.mock.calls.map(({ arguments: [timer] }) => timer),
    [checks.result],
  );
});

test('closes all connections when it stops', async (context) => {
  const { listener, client } = await served(context, { serve: (_, response) => void response.write('x') });
  const callers = [await client(), await client(get('/')), await client('GET / HT')];
  await callers[1]?.received(/x/);
  await listener.close();
  await until(() => callers.every(({ isClosed }) => isClosed()));
  assert.ok((await clientOf(listener.port)).isClosed());
});
