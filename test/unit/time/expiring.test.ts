import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { registeredClusters } from '#shared/access/registered-clusters.ts';
import { watchBuiltIn } from '#shared/console/built-in-watch.ts';
import { FleetView } from '#shared/console/fleet-view.ts';
import { Sessions } from '#shared/console/session.ts';
import { checkedAccess } from '#shared/engine/evict/checked-access.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { LEASE_TTL_MS } from '#shared/state/lease.ts';
import { Leadership } from '#shared/state/objects/leadership.ts';
import { RULES_MAX_AGE_MS, rulesReader } from '#shared/state/rules-store.ts';
import { cached, RefreshingCache } from '#shared/time/cache.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { rules } from '#test/unit/eviction/builders.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';
import { SteppedClock } from '#test/world/stepped-clock.ts';

const NOW = Date.UTC(2026, 0, 1);
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const C1 = clusterName('c1');

/**
 * Starts something with a limited duration and returns a function that reports whether it still lasts. The function
 * must be called once, because a call may restart the duration.
 */
type Lasting = (clock: SteppedClock) => Promise<() => boolean | Promise<boolean>>;

/** Reads a value, and then reports whether it is cached. */
const once = (read: (count: () => void, clock: SteppedClock) => () => unknown): Lasting => {
  return async (clock) => {
    let reads = 0;
    const get = read(() => {
      reads += 1;
    }, clock);
    await get();
    const before = reads;
    return async () => {
      await get();
      return reads === before;
    };
  };
};

const EVICT: Rules = {
  ...rules,
  policy: { ...rules.policy, method: { kind: 'evict', timeoutMs: MINUTE, onTimeout: 'delete' } },
};

/** Values that expire by the longer of both clocks. */
const EXPIRING: Readonly<Record<string, readonly [lastsMs: number, Lasting]>> = {
  'rules that were read': [
    RULES_MAX_AGE_MS,
    once((count, clock) => {
      const read = async () => {
        count();
        return {
          orders: { revision: 0, stops: [], holds: [] },
          guard: { revision: 0, trips: [] },
          fleetRevision: 0,
        };
      };
      const reader = rulesReader({ rulesStore: { read }, matching: { comparisonOperators: false }, clock });
      return () => reader(C1);
    }),
  ],
  'a lease that was read': [
    SECOND,
    once((count, clock) => {
      const read = cached(SECOND, async () => count(), clock);
      return () => read(C1);
    }),
  ],
  'a lease that is held': [
    LEASE_TTL_MS,
    async (clock) => {
      const leadership = new Leadership(new FakeObjects(), clock);
      await leadership.take(C1, undefined, 'a', clock.now());
      return leadership.mayAct;
    },
  ],
  credentials: [
    MINUTE,
    once((count, clock) => {
      const value = new RefreshingCache(
        async () => ({ value: count(), freshForMs: MINUTE, servesForMs: HOUR }),
        clock,
      );
      return () => value.get();
    }),
  ],
  'the registration of a cluster': [
    20 * SECOND,
    once((count, clock) => {
      const get = async () => {
        count();
        return { name: C1, access: { kind: 'local-context', context: 'kind' }, addedAt: NOW } as const;
      };
      const connect = () => ({ host: 'c1', requestOptions: () => Promise.reject(new Error('not asked')) });
      const clusters = registeredClusters({ registry: { get }, connect, clock, installation: 'test' });
      return () => clusters.api(C1);
    }),
  ],
  'permissions that were missing': [
    10 * MINUTE,
    once((count, clock) => {
      const allowed = async () => {
        count();
        return false;
      };
      const access = checkedAccess({
        clusters: { api: async () => Object.assign(new FakeCluster(clock), { host: 'c1', allowed }) },
        lease: async () => undefined,
        rules: async () => EVICT,
        clock,
        log: recordingLog(),
      });
      return () => access.api(C1);
    }),
  ],
  'what is known of a built-in controller': [
    5 * MINUTE,
    once((count, clock) => {
      const live = { objects: {}, close: () => undefined };
      const builtIn = watchBuiltIn({ cluster: async () => live as never }, clock, async () => {
        count();
        return { state: 'off', evidence: 'its flags' };
      });
      return async () => {
        builtIn(C1);
        await new Promise((resolve) => setImmediate(resolve));
      };
    }),
  ],
  'a look at the fleet': [
    SECOND,
    once((count, clock) => {
      const clusters = async () => {
        count();
        return [];
      };
      const view = new FleetView({
        fleet: {
          clusters,
          service: async () => undefined,
          rulesStore: { fleetStop: async () => undefined },
        } as never,
        queues: async () => ({ unknown: [] }),
        builtIn: () => ({ state: 'unknown', evidence: '' }),
        clock,
        maxAgeMs: SECOND,
      });
      return () => view.read();
    }),
  ],
  'a link to the console': [
    HOUR,
    async (clock) => {
      const sessions = new Sessions({ clock });
      const key = sessions.link();
      return () => sessions.open(key) !== undefined;
    },
  ],
  'a session of the console': [
    12 * HOUR,
    async (clock) => {
      const sessions = new Sessions({ clock });
      const { path, cookie } = sessions.open(sessions.link()) ?? { path: '', cookie: '' };
      return () => sessions.find(path, cookie) !== undefined;
    },
  ],
};

const TIME = fc.array(
  fc.record({ passMs: fc.nat({ max: 2 * MINUTE }), setMs: fc.integer({ min: -HOUR, max: HOUR }) }),
  { minLength: 1, maxLength: 6 },
);

async function begin(lasting: Lasting) {
  const clock = new SteppedClock(NOW);
  return { clock, lasts: await lasting(clock) };
}

for (const [what, [lastsMs, lasting]] of Object.entries(EXPIRING))
  describe(`${what} while the clock is set`, () => {
    test('lasts no longer when the clock is set back', async () => {
      const { clock, lasts } = await begin(lasting);
      clock.set(-HOUR);
      clock.pass(lastsMs);
      assert.equal(await lasts(), false);
    });

    test('lasts as long as ever when the clock is set back', async () => {
      const { clock, lasts } = await begin(lasting);
      clock.set(-HOUR);
      clock.pass(lastsMs - 1);
      assert.equal(await lasts(), true);
    });

    test('expires if the process was frozen in the meantime', async () => {
      const { clock, lasts } = await begin(lasting);
      clock.set(lastsMs);
      assert.equal(await lasts(), false);
    });

    test('never lasts longer than its limit, however the clock is set', async () => {
      await fc.assert(
        fc.asyncProperty(TIME, async (steps) => {
          const { clock, lasts } = await begin(lasting);
          for (const { passMs, setMs } of steps) {
            clock.set(setMs);
            clock.pass(passMs);
          }
          if (clock.stopwatch() >= lastsMs || clock.now() - NOW >= lastsMs)
            assert.equal(await lasts(), false);
        }),
        { numRuns: 30 },
      );
    });
  });
