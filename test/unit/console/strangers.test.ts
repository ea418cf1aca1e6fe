import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get as httpGet, type IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { type Client, clientOf } from '#test/unit/http/served.ts';
import { until } from '#test/world/turns.ts';
import { servedConsole } from './served-console.ts';

test('serves the console despite connections of other users of the machine', async (t) => {
  const { enter, port, own } = await entered(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const status = async (): Promise<number | undefined> => {
    const request = httpGet({
      host: '127.0.0.1',
      port,
      path: `${enter.path}api/status`,
      headers: own,
      agent,
    });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'end');
    return response.statusCode;
  };
  assert.equal(await status(), 200);
  const strangers: Client[] = [];
  t.after(() => strangers.forEach(({ socket }) => void socket.destroy()));
  const texts = ['', 'GET / HTTP/1.1\r\n', `GET / HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`];
  for (let number = 0; number < 300; number++) {
    strangers.push(await clientOf(Number(port), texts[number % texts.length]));
  }
  await until(() => strangers.filter(({ isClosed }) => !isClosed()).length <= 48);
  const before = Object.values(agent.freeSockets)[0]?.[0];
  assert.equal(await status(), 200, 'on the connection that it had');
  assert.equal(Object.values(agent.freeSockets)[0]?.[0], before);
  assert.ok(await enter.ask('GET api/session', {}), 'on a new one');
});

async function entered(t: Parameters<typeof servedConsole>[0]) {
  const served = await servedConsole(t);
  const enter = await served.enter();
  return { ...served, enter, port: Number(served.port), own: enter.own };
}
