import type { TestContext } from 'node:test';
import type { Context } from 'aws-lambda';
import { Registry } from 'prom-client';
import { createHandler } from '#functions/heartbeat/handler.ts';
import { Emf } from '#shared/aws/emf.ts';
import { DeltaSender } from '#shared/aws/relay/delta-sender.ts';
import { RegistryFollower } from '#shared/aws/relay/follow-registry.ts';
import { Relay } from '#shared/engine/watch/relay.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { RulesWatch } from '#shared/engine/watch/rules-watch.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { allRulesReader } from '#shared/state/rules-store.ts';
import { logTo } from '#shared/telemetry/log.ts';
import { SeededRandom } from '#test/simulation/seeded-random.ts';
import { liveNode } from '#test/unit/engine/watch/live-objects.ts';
import { WatchedCluster } from '#test/unit/engine/watch/watched-cluster.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { PROVEN } from '#test/world/proven.ts';
import { CountedTable, type Units } from './counted-table.ts';

/** The time until each relay has its share of the clusters. */
const SETTLED_MINUTES = 3;
/** `heartbeat` is called once a minute. */
const MINUTE_MS = 60_000;

/**
 * Returns the table's request units per minute for relays and `heartbeat`, averaged over `minutes`, in a fleet of
 * clusters without taints. Relays and function are the deployed ones; the table and the clusters are fakes, and time is
 * driven.
 */
export async function idleUnits(
  context: Pick<TestContext, 'mock' | 'after'>,
  {
    relays,
    clusters,
    minutes,
  }: { readonly relays: number; readonly clusters: number; readonly minutes: number },
): Promise<Units> {
  context.mock.method(Math, 'random', new SeededRandom(relays * 1000 + clusters).next);
  const time = driveTimers(context, Date.UTC(2026, 10, 22));
  const clock = { now: Date.now };
  const counted = new CountedTable(Date.now);
  const table = new DynamoDbTable({ client: counted.client, tableName: 'taintward' });
  const registry = new DynamoDbClusterRegistry(table);
  for (let index = 0; index < clusters; index++) {
    const access = { kind: 'eks', clusterName: `production-${index}`, region: 'us-east-1' } as const;
    await registry.add({ name: clusterName(`production-${index}`), access, addedAt: Date.now() });
  }
  const stopping = new AbortController();
  const running = Array.from({ length: relays }, (_, index) =>
    runRelay(
      `ip-10-0-0-${index}.ec2.internal/2d5b4b0e-6a0f-4c0a-9b6c-6f1f7f6a0a${index}`,
      table,
      clock,
      stopping.signal,
    ),
  );
  const heartbeat = createHandler({
    registry,
    leases: new DynamoDbLeases(table),
    emf: quietEmf(clock),
    stopwatch: Date.now,
    log: logTo(() => undefined),
  });
  const pass = async (count: number) => {
    for (let passed = 0; passed < count; passed++) {
      void heartbeat(undefined, {} as Context);
      await time.pass(MINUTE_MS);
    }
  };
  await pass(SETTLED_MINUTES);
  const before = counted.units;
  await pass(minutes);
  const after = counted.units;
  stopping.abort();
  const ended = Promise.all(running);
  await time.pass(1_000);
  await ended;
  return {
    reads: (after.reads - before.reads) / minutes,
    writes: (after.writes - before.writes) / minutes,
  };
}

const quietEmf = (clock: { readonly now: () => number }): Emf =>
  new Emf({ namespace: 'taintward', clock, write: () => undefined });

/** Runs a relay as `functions/relay/main.ts` does. */
async function runRelay(
  holder: string,
  table: DynamoDbTable,
  clock: { readonly now: () => number },
  signal: AbortSignal,
): Promise<void> {
  const log = logTo(() => undefined);
  const metrics = relayMetrics(new Registry(), quietEmf(clock));
  const rulesStore = new DynamoDbRulesStore(table);
  const rules = new RulesWatch({
    readAll: allRulesReader(rulesStore, { comparisonOperators: false }),
    clock,
    log,
  });
  const nothing = { send: async () => [] };
  const relay = new Relay({
    prover: PROVEN,
    rules,
    rulesStore,
    clock,
    log,
    metrics,
    holder,
    leases: new DynamoDbLeases(table),
    store: new DynamoDbStore(table),
    history: new DynamoDbHistory(table),
    outbox: new DeltaSender({ nodeDeltas: nothing, podDeltas: nothing, clock, log, metrics }),
    nodeBudget: Number.POSITIVE_INFINITY,
  });
  const follower = new RegistryFollower({
    installation: undefined,
    registry: new DynamoDbClusterRegistry(table),
    follows: () => true,
    connect: ({ name }) => ({ host: name, requestOptions: () => Promise.reject(new Error('nobody calls')) }),
    relay: {
      add: (name) => {
        const cluster = new WatchedCluster(clock.now);
        cluster.nodes.lists = [{ items: [liveNode('n1')], resourceVersion: '1' }];
        relay.add(name, cluster);
      },
      remove: (name) => relay.remove(name),
    },
    log,
    signal,
  });
  await follower.run();
  await relay.stop();
  await rules.stop();
}
