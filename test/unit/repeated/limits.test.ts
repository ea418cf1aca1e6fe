import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LaterEvents } from '#shared/engine/evict/later-events.ts';
import { ListSlots } from '#shared/engine/watch/list-slots.ts';
import { WorkQueue } from '#shared/engine/work-queue/work-queue.ts';
import { Workers } from '#shared/engine/work-queue/workers.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { PrioritySemaphore } from '#shared/kubernetes/http/priority-semaphore.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { systemClock } from '#shared/time/clock.ts';
import { givesBack } from '#test/world/given-back.ts';
import { settled } from '#test/world/turns.ts';

type Work = () => Promise<void>;

/** Something that runs this many units of work at a time. `run` starts one; the work itself shows when it begins. */
interface Limited {
  readonly limit: number;
  run(work: Work, nth: number): void;
  close?(): void | Promise<void>;
}

const [one, two] = [clusterName('one'), clusterName('two')];
const ignored = () => undefined;

/** Waits for a condition, unless so many turns of the event loop pass that it never holds. */
async function until(holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < 500_000 && !holds(); turn++) await nextTurn();
  assert.ok(holds(), `${holds}`);
}

/** An API server that answers when `work` ends: with an error status, or by a cut connection, if it rejects. */
async function calls(): Promise<Limited> {
  const works = new Map<number, Work>();
  const server = createServer((request, response) => {
    const nth = Number(request.url?.split('/').at(-1)?.slice(1));
    const work = works.get(nth);
    // A call whose reused connection was cut comes again.
    works.delete(nth);
    (work?.() ?? Promise.resolve()).then(
      () => response.end('{"metadata":{"name":"n"}}'),
      () => (nth % 4 === 1 ? response.writeHead(500).end('{}') : response.destroy()),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const access = { server: new URL(`http://${host}`), headers: {} };
  const api = new RestApi({ host, requestOptions: async () => access });
  return {
    limit: 60,
    run(work, nth) {
      works.set(nth, work);
      api.getNode(nodeName(`n${nth}`)).catch(ignored);
    },
    close() {
      api.close();
      server.close();
    },
  };
}

function workers(): Limited {
  const queue = new WorkQueue<string>({
    clock: systemClock,
    backoff: { firstMs: 1, longestMs: 1 },
    clusterOf: (key) => (key.endsWith('0') ? one : two),
  });
  const works = new Map<string, Work>();
  const work = async (key: string): Promise<undefined> => {
    const begun = works.get(key);
    works.delete(key);
    await begun?.();
  };
  new Workers({ queue, atOnce: 3, work, failed: ignored }).offer();
  return {
    limit: 3,
    run(unit, nth) {
      works.set(`${nth}`, unit);
      queue.add(`${nth}`);
    },
    async close() {
      await until(() => queue.resting === 0);
      await settled();
      assert.equal(queue.size, 0, 'each failed key came again');
    },
  };
}

const LIMITED: Readonly<Record<string, () => Limited | Promise<Limited>>> = {
  'turns of urgent and patient work': () => {
    const turns = new PrioritySemaphore(3);
    return {
      limit: 3,
      run: (work, nth) => void turns.run(work, { inHurry: nth % 3 === 0 }).catch(ignored),
    };
  },
  'slots that clusters share': () => {
    const slots = new ListSlots(3);
    const clusters = [{}, {}];
    return {
      limit: 3,
      run: (work, nth) => void slots.run(clusters[nth % 3 === 0 ? 0 : 1] ?? {}, work).catch(ignored),
    };
  },
  'workers of a queue': workers,
  'Events of passes': () => {
    const later = new LaterEvents();
    return {
      limit: 8,
      // As many Events as may wait in all, several times.
      run: (work) => void later.post(one, 2_000, () => work().catch(ignored)),
    };
  },
  'calls of an API server': calls,
};

describe('after ten times as much work as the limit, half of it failed, the limit is the same:', () => {
  for (const [name, make] of Object.entries(LIMITED)) {
    test(name, () =>
      givesBack(async () => {
        const { limit, run, close } = await make();
        let [begun, ended] = [0, 0];
        const { promise, resolve: release } = Promise.withResolvers<void>();
        const short = (nth: number) => async () => {
          await nextTurn();
          ended += 1;
          if (nth % 2 === 1) throw new Error('it failed');
        };
        const long = async () => {
          begun += 1;
          await promise;
          ended += 1;
        };
        const many = 10 * limit;
        for (let nth = 0; nth < many; nth++) {
          run(short(nth), nth);
          if ((nth + 1) % (2 * limit) === 0) await until(() => ended > nth);
        }
        await until(() => ended === many);
        await settled();
        for (let nth = 0; nth <= limit; nth++) run(long, many + 2 * nth);
        await until(() => begun >= limit);
        await settled();
        assert.equal(begun, limit);
        release();
        await until(() => ended === many + limit + 1);
        await close?.();
      }),
    );
  }
});
