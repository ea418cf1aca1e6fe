import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { Registry } from 'prom-client';
import { stateMetrics } from '#shared/engine/evict/eviction-metrics.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import type { PendingCounts } from '#shared/operations/look/pending-state.ts';
import { aNode, aRecord, NOW } from '#test/contracts/partition-builders.ts';
import { commandLine } from '#test/unit/cli/command-line.ts';
import { servedConsole } from './served-console.ts';

const PROD = clusterName('prod');
const MINUTE = 60_000;
const NODES = ['node-1', 'node-2'];

/** A pending eviction in any of its states, on one of the nodes. */
const pods = fc.array(
  fc.record({
    node: fc.constantFrom(...NODES),
    isWeb: fc.boolean(),
    dueAt: fc.constantFrom(NOW - MINUTE, NOW, NOW + MINUTE, NOW + 90 * MINUTE),
    state: fc.constantFrom<Partial<EvictionRecord>>(
      {},
      { held: { by: { kind: 'observe' }, since: NOW } },
      { failure: { since: NOW, error: 'denied' } },
      { gaveUpAt: NOW },
      { blocked: { since: NOW, nextTryAt: NOW + 1, reason: 'a budget' } },
    ),
  }),
  { maxLength: 8 },
);

const COUNTS = ['pending', 'due', 'held', 'observed', 'blocked', 'retrying', 'failed'] as const;
const countsIn = (counts: Partial<PendingCounts>) =>
  Object.fromEntries(COUNTS.map((name) => [name, counts[name] ?? 0]));

test('all views of the same pending evictions count them alike, in any states and under any rules', async (t) => {
  const acts = fc.record({ stops: fc.boolean(), holds: fc.boolean(), enforces: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(pods, acts, async (given, { stops, holds, enforces }) => {
      const served = await servedConsole(t, { clusters: ['prod'] });
      for (const node of NODES) {
        const schedule = given.flatMap(({ node: on, isWeb, dueAt, state }, index) =>
          on === node
            ? aRecord({
                name: isWeb ? 'web' : `pod-${index}`,
                uid: podUid(`u${index}`),
                dueAt,
                ...(dueAt <= NOW ? state : {}),
              })
            : [],
        );
        const ref = { cluster: PROD, node: nodeName(node) };
        await served.store.commit(ref, 0, { node: aNode(), schedule, end: [], live: true }, NOW);
      }
      const operator = await served.fleet.operator();
      if (enforces) await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce' }, operator);
      if (enforces && stops) await perform({ kind: 'stop', cluster: PROD, reason: 'a test' }, operator);
      const target = { kind: 'pod', namespace: 'default', name: 'web' } as const;
      if (holds) await perform({ kind: 'hold', cluster: PROD, target, reason: 'a test' }, operator);
      const { ask } = await served.enter();
      const [{ clusters, issues }, nodes, { rows, total }, { minutes, later }] = await Promise.all([
        ask('GET api/status', {}),
        ask('GET api/nodes', {}),
        ask('GET api/pending', {}),
        ask('GET api/timeline', {}),
      ]);
      const [status = assert.fail('there is no cluster')] = clusters;
      const { pending, held = 0, heldBy = {}, failed = 0, nextAt } = status;
      const sum = (counts: readonly number[]) => counts.reduce((all, count) => all + count, 0);
      assert.deepEqual(
        {
          list: total,
          nodes: sum(nodes.map((node) => node.pending)),
          timeline: sum(minutes.flatMap((minute) => Object.values(minute))) + later + failed,
        },
        { list: pending, nodes: pending, timeline: pending },
      );
      assert.deepEqual([sum(nodes.map((node) => node.held)), sum(Object.values(heldBy))], [held, held]);
      assert.equal(rows.filter(([, , , , , , state]) => state === 'failed').length, failed);
      assert.equal(
        issues.some(({ type }) => type === 'failed'),
        failed > 0,
      );
      const { run } = commandLine(t, served.fleet);
      const json = async (...args: readonly string[]) => JSON.parse(await run(...args, 'prod', '-o', 'json'));
      const [{ clusters: ofCommand }, listed, kept, groups] = [
        await json('status'),
        await json('pending'),
        await json('pending', '--held'),
        await json('pending', '--by', 'node'),
      ];
      assert.deepEqual(countsIn(ofCommand[0]), countsIn(status));
      assert.deepEqual([listed.length, kept.length], [pending, held]);
      for (const [name, count] of Object.entries(countsIn(status)))
        assert.equal(sum(groups.map((group: Record<string, number>) => group[name])), count, name);
      const registry = new Registry();
      stateMetrics(registry, served.store);
      const [metric] = await registry.getMetricsAsJSON();
      const samples = metric?.values ?? [];
      assert.equal(sum(samples.map(({ value }) => value)), pending);
      assert.equal(samples.find(({ labels }) => labels['state'] === 'failed')?.value ?? 0, failed);
      const next = nodes.flatMap((node) => node.nextAt ?? []);
      assert.equal(nextAt, next.length === 0 ? undefined : Math.min(...next));
    }),
    { numRuns: 40 },
  );
});
