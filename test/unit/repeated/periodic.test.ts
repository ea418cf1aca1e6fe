import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { Registry } from 'prom-client';
import { dueMetrics } from '#functions/agent/due-metrics.ts';
import { DueSource } from '#functions/agent/due-source.ts';
import { startUpkeep } from '#functions/service/upkeep.ts';
import { RegistryFollower } from '#shared/aws/relay/follow-registry.ts';
import type { FleetView, Seen } from '#shared/console/fleet-view.ts';
import { Live } from '#shared/console/live.ts';
import { ClusterFaults } from '#shared/engine/watch/cluster-faults.ts';
import { Fleet } from '#shared/engine/watch/fleet.ts';
import { LEASE_READ_MS, LEASE_RENEW_MS, LeaseManager } from '#shared/engine/watch/lease-manager.ts';
import { CHECK_PERMISSIONS_MS, watchPermissions } from '#shared/engine/watch/permission-watch.ts';
import { RulesWatch } from '#shared/engine/watch/rules-watch.ts';
import { HEARTBEAT_MS, keepTakeover } from '#shared/engine/watch/takeover-heartbeat.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { Lease, LeaseRecord, Leases } from '#shared/state/lease.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { rules } from '#test/unit/eviction/builders.ts';
import { drivenClock as clock, driveTimers } from '#test/world/driven-timers.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { givesBack } from '#test/world/given-back.ts';

/** The work that comes again and again. It counts itself, and fails or lasts as the test says. */
type Work = () => Promise<void>;

interface Periodic {
  /** The longest time between two runs, in which one that failed comes again, too. */
  readonly everyMs: number;
  /** Begins it. The returned function stops it. */
  begin(work: Work): () => unknown;
}

const cluster = clusterName('c1');
const log = recordingLog();
const ignored = () => undefined;
const aborting = (begin: (signal: AbortSignal) => unknown) => {
  const stopping = new AbortController();
  const ended = begin(stopping.signal);
  return () => {
    stopping.abort();
    return ended;
  };
};

function leases(work: Partial<Pick<Leases, 'read' | 'renew'>>) {
  const taken: Lease = { cluster, holder: 'us', epoch: 1, renewals: 0, renewedAt: 0 };
  const table = {
    read: async () => undefined,
    take: async () => taken,
    renew: async () => taken,
    release: async () => undefined,
    ...work,
  } as unknown as Leases;
  const nothing = ignored;
  const held = (_: Lease, signal: AbortSignal) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  const fleet = new Fleet({ holder: 'us', budget: Infinity, stopwatch: clock.now });
  const manager = new LeaseManager(
    cluster,
    {
      held,
      regained: nothing,
      reached: nothing,
      report: () => ({ faults: [] }),
    },
    { leases: table, clock, log, holder: 'us', fleet },
  );
  manager.start();
  return () => manager.stop();
}

/** A listener of the console. `written`: called with each text that it gets. */
function listening(read: () => Promise<Seen>, written: (text: string) => void = ignored) {
  const response = Object.assign(new EventEmitter(), {
    destroyed: false,
    writableLength: 0,
    writeHead: ignored,
    end: ignored,
    destroy: ignored,
    write: (text: string) => {
      written(text);
      return true;
    },
  });
  const live = new Live({ view: { read, listen: ignored } as unknown as FleetView, clock });
  void live.join(response as unknown as ServerResponse, new AbortController().signal);
  return () => response.emit('close');
}

const SEEN = { version: 1, at: 0, clusters: [], pending: [], unknown: [] } as unknown as Seen;

const PERIODIC: Readonly<Record<string, Periodic>> = {
  'a task of upkeep': {
    everyMs: 10_000,
    begin(work) {
      const upkeep = startUpkeep([{ name: 'task', everyMs: 10_000, run: work }], log);
      return () => upkeep.stop();
    },
  },
  'the read of rules': {
    everyMs: 2_000,
    begin(work) {
      const readAll = () => work().then(() => new Map([[cluster, rules]]));
      const watch = new RulesWatch({ readAll, clock, log });
      watch.follow(cluster, ignored, new AbortController().signal);
      return () => watch.stop();
    },
  },
  'the look at a lease that another relay renews': {
    everyMs: LEASE_READ_MS,
    begin(work) {
      const found = { cluster, holder: 'other', epoch: 1, renewedAt: 0 };
      return leases({
        read: () => work().then(() => ({ ...found, renewals: clock.now() }) as LeaseRecord),
      });
    },
  },
  'the renewal of a lease': {
    everyMs: LEASE_RENEW_MS,
    begin: (work) => leases({ renew: (lease) => work().then(() => lease) }),
  },
  'the heartbeat of a takeover': {
    everyMs: HEARTBEAT_MS,
    begin(work) {
      const api = new FakeCluster(clock);
      api.skewMs = 0;
      api.putTakeover(['a'], 90_000);
      const renew = api.renewTakeover.bind(api);
      api.renewTakeover = (...args) => work().then(() => renew(...args));
      const deps = {
        api,
        clock,
        log,
        onState: ignored,
        holdsLease: () => true,
        whyStalled: async () => undefined,
        policy: () => ({ ...rules.policy, treatAsNoExecute: ['a'] }),
        connectionState: () => 'live' as const,
        prove: async () => ({ asOf: clock.now() }),
      };
      return aborting((signal) => keepTakeover(cluster, deps, signal));
    },
  },
  'the check of permissions': {
    everyMs: CHECK_PERMISSIONS_MS,
    begin(work) {
      const api = { ping: async () => undefined, lacking: () => work().then(() => []) };
      return aborting((signal) => watchPermissions(api, new ClusterFaults(clock), signal, ignored));
    },
  },
  'the read of the registry': {
    everyMs: 10_000,
    begin: (work) =>
      aborting((signal) =>
        new RegistryFollower({
          installation: undefined,
          registry: { list: () => work().then(() => ({ clusters: [], strays: [] })) },
          relay: { add: ignored, remove: async () => undefined },
          follows: () => true,
          connect: () => assert.fail('it has no cluster'),
          log,
          signal,
        }).run(),
      ),
  },
  'the call that receives due messages': {
    everyMs: 10_000,
    begin(work) {
      const send = async () => {
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        await work();
        return {};
      };
      const due = new DueSource({
        client: { send } as unknown as SQSClient,
        queueUrl: 'https://sqs/due',
        clock,
        log,
        handle: () => assert.fail('it has no message'),
        visibility: { retryIn: async () => undefined },
        reached: ignored,
        metrics: dueMetrics(new Registry()),
      });
      return () => due.stop(0);
    },
  },
  'the look of the console': {
    everyMs: 1_000,
    begin(work) {
      let joined = false;
      return listening(async () => {
        if (joined) await work();
        joined = true;
        return SEEN;
      });
    },
  },
  'the sign of life to a page of the console': {
    everyMs: 5_000,
    begin: (work) =>
      listening(
        async () => SEEN,
        (text) => text.startsWith('event: time\n') && void work().catch(ignored),
      ),
  },
};

/** Begins something periodic, and counts its runs. */
function began(context: TestContext, { everyMs, begin }: Periodic) {
  const time = driveTimers(context);
  let runs = 0;
  let work: Work = async () => undefined;
  const stop = begin(() => {
    runs += 1;
    return work();
  });
  return {
    stop,
    /** Resolves with the runs within the time of four. */
    runs: async (task: Work) => {
      work = task;
      const before = runs;
      await time.pass(4 * everyMs);
      return runs - before;
    },
  };
}

const succeeds = async () => undefined;
const fails = async () => {
  throw new Error('it failed');
};

describe('comes again and again, whatever became of it, until it is stopped:', () => {
  for (const [name, periodic] of Object.entries(PERIODIC)) {
    test(name, (context) =>
      givesBack(async () => {
        const { runs, stop } = began(context, periodic);
        for (const [index, outcome] of [succeeds, fails, succeeds, fails].entries())
          assert.ok((await runs(outcome)) >= 3, `phase ${index}`);
        const stopped = stop();
        assert.ok((await runs(succeeds)) <= 1, 'what was under way ends');
        await stopped;
        assert.equal(await runs(succeeds), 0);
      }),
    );

    for (const [outcome, end] of Object.entries({ succeeds, fails })) {
      test(`${name}, stopped while one is under way that ${outcome}`, (context) =>
        givesBack(async () => {
          const { runs, stop } = began(context, periodic);
          const { promise, resolve: release } = Promise.withResolvers<void>();
          await runs(() => promise.then(end));
          const stopped = stop();
          release();
          assert.equal(await runs(succeeds), 0);
          await stopped;
          assert.equal(await runs(succeeds), 0);
        }));
    }
  }
});
