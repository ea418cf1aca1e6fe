import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { guideRows } from '#test/costs/guide-rows.ts';
import { PRICES, perMillion, SECONDS_A_MONTH } from '#test/costs/prices.ts';
import { evictions, sum } from '#test/scale/bill.ts';
import { readConstants } from '#test/scale/constants.ts';
import type { Counts } from '#test/scale/counted-fleet.ts';
import { each, type Tree } from '#test/scale/counts.ts';
import { idleUnitsOf, type ModelInput, ratesOf, resourcesOf } from '#test/scale/model.ts';
import { QUOTAS } from '#test/scale/quotas.ts';
import { SCENARIOS, type Scenario } from '#test/scale/scenarios.ts';
import { settingsFor } from '#test/scale/settings.ts';
import { countWork } from '#test/scale/work.ts';

const constants = readConstants();

/** All nodes of a fleet once, within a second; nothing else. */
const ONCE: Scenario = {
  about: 'all nodes are tainted once',
  lasts: () => 1,
  tainted: ({ clusters, nodes }) => clusters * nodes,
  standing: () => 0,
  cleared: () => 0,
};

const inputOf = (fleet: ModelInput['fleet'], scenario: Scenario): ModelInput => ({
  ...{ fleet, scenario, constants },
  settings: settingsFor(fleet, constants),
});

/** Numbers of a tree, by their paths. */
function* numbersOf(tree: Tree, path = ''): Iterable<readonly [string, number]> {
  for (const [name, value] of Object.entries(tree)) {
    if (typeof value === 'number') yield [`${path}${name}`, value];
    else yield* numbersOf(value, `${path}${name}.`);
  }
}

/** Within a tenth, or by one: what is counted grows in steps. */
function assertAlike(modelled: Counts, counted: Counts): void {
  const found = new Map(numbersOf(counted as unknown as Tree));
  for (const [what, value] of numbersOf(modelled as unknown as Tree)) {
    const is = found.get(what) ?? 0;
    const off = Math.abs(value - is);
    assert.ok(
      off <= Math.max(0.1 * Math.abs(is), 1),
      `${what} of a node: the model says ${value}, counted are ${is}`,
    );
  }
}

test('the model says what the service itself asks for, of a fleet of another shape than it was measured with', async (t) => {
  const [clusters, nodes, pods] = [2, 10, 30];
  const counted = await countWork(t, { clusters, nodes, pods, tolerationSeconds: 60 });
  const { counts } = ratesOf(inputOf({ clusters, nodes, pods }, ONCE));
  assertAlike(
    each(counts, counts, (all) => all / (clusters * nodes)),
    counted.tainted,
  );
  assertAlike(constants.counts.resynced, counted.resynced);
  assertAlike(constants.counts.cleared, counted.cleared);
  const { nodeDeltas, due, apiRequests } = counted.tainted;
  assert.deepEqual([nodeDeltas.messages, due.messages], [1, 2], 'a delta, an announcement, a timer');
  assert.ok(apiRequests >= 4 * pods, 'two Events, a mark and a delete for each pod');
});

describe('the model agrees with the guide’s costs', () => {
  const rowOf = (name: string): readonly string[] =>
    guideRows().find(([what]) => what === name) ?? assert.fail(`the guide has no row ${name}`);

  test('of a million evictions', () => {
    const nodesOfAMillion = 20_000;
    const bill = evictions(inputOf({ clusters: 1, nodes: nodesOfAMillion, pods: 50 }, ONCE));
    const most = Number.parseFloat(/to ([\d.]+)/.exec(rowOf('together').at(-1) ?? '')?.[1] ?? '');
    // It counts down for longer than the guide's, and is announced: the guide says what that adds.
    const announced = 0.03;
    const dollars = sum(bill);
    assert.ok(Math.abs(dollars - most - announced) <= 0.1 * most, `$${dollars}, not $${most + announced}`);
  });

  test('of clusters while nothing happens, with 1, 2 and 20 relays', () => {
    const told = (rowOf('a cluster, with 1, 2 or 20 relays').at(-1) ?? '').split(', ').map(Number);
    const modelled = [1, 2, 20].map((relays) => {
      const { reads, writes } = idleUnitsOf({ clusters: 1, nodes: 1, pods: 1 }, relays, constants);
      const own = idleUnitsOf({ clusters: 0, nodes: 1, pods: 1 }, relays, constants).reads;
      const minutes = SECONDS_A_MONTH / 60;
      return (
        perMillion((reads - own) * minutes, PRICES.dynamoDbReadsPerMillion) +
        perMillion(writes * minutes, PRICES.dynamoDbWritesPerMillion)
      );
    });
    assert.deepEqual(
      modelled.map((dollars) => dollars.toFixed(2)),
      told.map((dollars) => dollars.toFixed(2)),
    );
  });
});

test('what is deployed in the model is what the guide says to deploy', () => {
  const rows = guideRows();
  const said = (nodes: string): string => rows.find(([head]) => head === nodes)?.[1] ?? assert.fail(nodes);
  const modelled = (clusters: number) => settingsFor({ clusters, nodes: 5_000, pods: 30 }, constants);
  assert.equal(said('up to 5,000'), 'nothing');
  assert.deepEqual([modelled(1).deltaConcurrency, modelled(1).evictConcurrency], [20, 50]);
  assert.match(said('up to 20,000'), new RegExp(`evictConcurrency\` ${modelled(4).evictConcurrency}$`));
  const { deltaConcurrency, evictConcurrency, warmWrites, lambdaConcurrency } = modelled(200);
  for (const setting of [
    `deltaConcurrency\` ${deltaConcurrency},`,
    `evictConcurrency\` ${evictConcurrency},`,
    `Lambda concurrency ${lambdaConcurrency.toLocaleString('en-US')};`,
    `warmWrites\` ${warmWrites}`,
  ]) {
    assert.ok(said('up to 1,000,000').includes(setting), setting);
  }
  assert.ok(said('beyond').endsWith(`deltaConcurrency\` ${modelled(1_000).deltaConcurrency}`));
  const nodesOfRelay = (1_000 * 5_000) / modelled(1_000).relayCount;
  assert.ok(nodesOfRelay <= 250_000, `${nodesOfRelay} nodes of a relay`);
});

test('the guide’s ceiling is the model’s: of small clusters, a new table’s reads', () => {
  for (const relayCount of [2, 20]) {
    const [, takes = ''] = guideRows().find(([who]) => who === `${relayCount} relays`) ?? [];
    const clusters = Number(/^([\d,]+) clusters/.exec(takes)?.[1]?.replaceAll(',', ''));
    const fleet = { clusters, nodes: 1, pods: 1 };
    const input = inputOf(fleet, SCENARIOS.idle);
    const resources = resourcesOf({ ...input, settings: { ...input.settings, relayCount } });
    const { use = 0, limit = 1 } = resources.find(({ what }) => what.startsWith('table: reads from')) ?? {};
    assert.ok(use / limit > 0.9 && use / limit <= 1.02, `${relayCount} relays: ${use} of ${limit}`);
  }
});

test('with twice the clusters no resource is used less', () => {
  for (const scenario of Object.values(SCENARIOS)) {
    const size = { nodes: 5_000, pods: 30 };
    const input = inputOf({ ...size, clusters: 100 }, scenario);
    const more = resourcesOf({ ...input, fleet: { ...size, clusters: 200 } });
    for (const [at, { what, use }] of resourcesOf(input).entries()) {
      assert.ok((more[at]?.use ?? 0) >= use * 0.99, `${what}: ${use}, then ${more[at]?.use}`);
    }
  }
});

test('a fleet in which nothing is tainted asks for nothing beyond what it does anyway', () => {
  const { counts } = ratesOf(inputOf({ clusters: 1_000, nodes: 5_000, pods: 30 }, SCENARIOS.idle));
  assert.deepEqual(
    [...numbersOf(counts as unknown as Tree)].filter(([, value]) => value !== 0),
    [],
  );
});

test('every limit names the page that says so', () => {
  for (const [name, { source }] of Object.entries(QUOTAS)) {
    assert.match(source, /^https:\/\/(docs\.aws\.amazon\.com|kubernetes\.io)\//, name);
  }
});
