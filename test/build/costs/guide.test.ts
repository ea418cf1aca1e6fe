import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { readEnvironment, relayEnvironment } from '#shared/aws/environment.ts';
import { QUEUES } from '#shared/aws/queue-set.ts';
import { type Properties, resourcesOf, resourceWith } from '#test/build/cdk/stack/resources.ts';
import { synthesized } from '#test/build/cdk/stack/synthesized.ts';
import type { Units } from '#test/costs/counted-table.ts';
import { guideHas, guideRows, rowText } from '#test/costs/guide-rows.ts';
import { idleUnits } from '#test/costs/idle-fleet.ts';
import { HOURS_A_MONTH, PRICES, perMillion, SECONDS_A_MONTH } from '#test/costs/prices.ts';

/** Event sources poll for 20 s at a time, five at once for an empty queue (Lambda Developer Guide). */
const POLLERS = 5;
const POLL_SECONDS = 20;
const HEARTBEAT_SECONDS = 0.2;
/** Kubelets write an unchanged node's status every five minutes (nodeStatusReportFrequency). */
const STATUS_PERIOD_SECONDS = 300;
/** An ordinary node on EKS. */
const NODE_BYTES = 14_000;
const NODES_OF_A_MILLION = 20_000;

/**
 * Relays, and the minutes for which they are counted: ten minutes include all periodic work; twenty relays are slow to
 * simulate.
 */
const COUNTED = [
  [1, 10],
  [2, 10],
  [20, 2],
] as const;
const money = (dollars: number): string => dollars.toFixed(2);
const whole = (count: number): string => Math.round(count).toLocaleString('en-US');

const inGuide = (...cells: readonly string[]): void => {
  const row = rowText(...cells);
  assert.ok(guideHas(row), `docs/reference/quotas-and-costs.md is to say:\n${row}`);
};

/** The table's units per minute, by cluster and by relay. */
interface Idle {
  readonly reads: number;
  readonly writes: number;
  readonly readsOfRelay: number;
}

describe("the guide's costs of an idle month", () => {
  const idle = new Map<number, Idle>();
  const dollarsOf = ({ reads, writes }: Pick<Idle, 'reads' | 'writes'>): number =>
    perMillion((reads * SECONDS_A_MONTH) / 60, PRICES.dynamoDbReadsPerMillion) +
    perMillion((writes * SECONDS_A_MONTH) / 60, PRICES.dynamoDbWritesPerMillion);
  const idleOf = (relays: number): Idle =>
    idle.get(relays) ?? assert.fail(`${relays} relays were not counted`);

  for (const [relays, minutes] of COUNTED) {
    test(`are counted with ${relays} of the deployed relays`, async (t) => {
      const found: Units[] = [];
      for (const clusters of [1, 3]) {
        await t.test(`on ${clusters} clusters`, async (subtest) => {
          found.push(await idleUnits(subtest, { relays, clusters, minutes }));
        });
      }
      const [one, three] = found;
      assert.ok(one && three);
      const reads = (three.reads - one.reads) / 2;
      const writes = (three.writes - one.writes) / 2;
      idle.set(relays, { reads, writes, readsOfRelay: (one.reads - reads) / relays });
      t.diagnostic(JSON.stringify(idle.get(relays)));
    });
  }

  test('contain the counted units of clusters and relays', () => {
    const all = COUNTED.map(([relays]) => idleOf(relays));
    inGuide(
      'a cluster, with 1, 2 or 20 relays',
      `leases, registry, what governs it: ${whole(idleOf(2).writes)} writes and ${all.map(({ reads }) => whole(reads)).join(', ')} reads a minute`,
      all.map((each) => money(dollarsOf(each))).join(', '),
    );
    const { readsOfRelay } = idleOf(1);
    inGuide(
      'a relay',
      `the same for all clusters: ${readsOfRelay.toFixed(1)} reads a minute`,
      money(dollarsOf({ reads: readsOfRelay, writes: 0 })),
    );
  });

  test("contain the polls of functions' event sources, and their schedules", () => {
    const fifo = Object.values(QUEUES).filter((queue) => queue.fifo).length;
    const standard = Object.values(QUEUES).length - fifo;
    const polls = (POLLERS * SECONDS_A_MONTH) / POLL_SECONDS;
    inGuide(
      "event sources' polls",
      `${fifo} FIFO queues and ${standard} other × ${POLLERS} pollers × ${60 / POLL_SECONDS} a minute: ${(((fifo + standard) * polls) / 1e6).toFixed(1)} million SQS requests`,
      money(
        perMillion(fifo * polls, PRICES.sqsFifoPerMillion) +
          perMillion(standard * polls, PRICES.sqsStandardPerMillion),
      ),
    );
    const minutes = SECONDS_A_MONTH / 60;
    const { MemorySize } = resourceWith(
      synthesized(),
      'AWS::Lambda::Function',
      'FunctionName',
      'taintward-heartbeat',
    ).properties;
    const gbSeconds = minutes * HEARTBEAT_SECONDS * (Number(MemorySize) / 1024);
    inGuide(
      '`heartbeat`',
      `${whole(minutes)} invocations of ${HEARTBEAT_SECONDS} s`,
      money(perMillion(minutes, PRICES.lambdaRequestsPerMillion) + gbSeconds * PRICES.lambdaArmPerGbSecond),
    );
  });

  describe("contain the fixed costs of the template's resources", () => {
    let template: ReturnType<typeof synthesized>;
    before(() => {
      template = synthesized();
    });
    const count = (type: string, of = template) => resourcesOf(of, type).size;

    test('relays and their addresses', () => {
      const [service = {}] = resourcesOf(template, 'AWS::ECS::Service').values();
      const [{ Cpu, Memory } = {} as Properties] = resourcesOf(template, 'AWS::ECS::TaskDefinition').values();
      const relays = Number(service['DesiredCount']);
      const [cpu, gb] = [Number(Cpu) / 1024, Number(Memory) / 1024];
      const hour = cpu * PRICES.fargateArmVcpuHour + gb * PRICES.fargateArmGbHour;
      inGuide(
        'relays',
        `${relays} × ${cpu} vCPU, ${gb} GB on arm64 Fargate`,
        money(relays * hour * HOURS_A_MONTH),
      );
      inGuide(
        "their public addresses, in the VPC of the stack's own",
        `${relays} × $${PRICES.publicAddressHour} an hour`,
        money(relays * PRICES.publicAddressHour * HOURS_A_MONTH),
      );
    });

    test('NAT gateways and their addresses, with static addresses, and their traffic', () => {
      const fixed = synthesized({ 'taintward:staticEgressIps': 'true' });
      const gateways = count('AWS::EC2::NatGateway', fixed);
      const hour =
        gateways * PRICES.natGatewayHour + count('AWS::EC2::EIP', fixed) * PRICES.publicAddressHour;
      inGuide(
        'in their place, with `taintward:staticEgressIps`',
        `${gateways} NAT gateways and their addresses × $${PRICES.natGatewayHour} and $${PRICES.publicAddressHour} an hour`,
        money(hour * HOURS_A_MONTH),
      );
      const gbOfNode = ((SECONDS_A_MONTH / STATUS_PERIOD_SECONDS) * NODE_BYTES) / 1e9;
      inGuide(
        'and what passes them',
        `$${PRICES.natGatewayPerGb} per GB: a node's status of ${NODE_BYTES / 1000} KB every ${STATUS_PERIOD_SECONDS / 60} minutes is ${gbOfNode.toFixed(2)} GB`,
        `${money(100 * gbOfNode * PRICES.natGatewayPerGb)} per 100 nodes`,
      );
    });

    test('alarms and the dashboard', () => {
      const alarms = count('AWS::CloudWatch::Alarm');
      const composite = count('AWS::CloudWatch::CompositeAlarm');
      inGuide(
        'alarms',
        `${alarms} × $${money(PRICES.alarm)}, and ${composite} on alarms × $${money(PRICES.compositeAlarm)}`,
        money(alarms * PRICES.alarm + composite * PRICES.compositeAlarm),
      );
      const dashboards = count('AWS::CloudWatch::Dashboard');
      inGuide(
        'dashboard',
        `${dashboards}; three of an account are free`,
        money(dashboards * PRICES.dashboard),
      );
    });
  });

  test('derive the ceiling from a relay and from the counted units', () => {
    const { NODE_CAPACITY } = readEnvironment(relayEnvironment, {
      TABLE_NAME: 't',
      METRIC_NAMESPACE: 'm',
      NODE_DELTAS_URL: 'https://q/1',
      POD_DELTAS_URL: 'https://q/2',
    });
    const mostClusters = (relays: number, readsASecond: number) =>
      Math.floor((readsASecond * 60) / idleOf(relays).reads / 100) * 100;
    inGuide(
      'a relay of 512 MiB',
      `${whole(NODE_CAPACITY)} nodes, a cluster counting as 100 more: 100 clusters of ${Math.floor(NODE_CAPACITY / 100) - 100} nodes, or one of ${whole(NODE_CAPACITY - 100)}`,
      'its memory: it says so (`relay.over-capacity`) and goes on; more or larger relays',
    );
    inGuide(
      '2 relays',
      `${whole(mostClusters(2, 12_000))} clusters`,
      'reads of a table that is new (12,000 a second)',
    );
    inGuide(
      '20 relays',
      `${whole(mostClusters(20, 12_000))} clusters, or ${whole(mostClusters(20, 40_000))}`,
      "the same, or the account's quota (40,000): every relay looks at every lease. Few large relays take more clusters than many small ones",
    );
  });
});

test("the guide's costs of a million evictions add up at these prices", () => {
  const prices: Readonly<Record<string, number>> = {
    '$0.50': PRICES.sqsFifoPerMillion,
    '$0.40': PRICES.sqsStandardPerMillion,
    '$0.125': PRICES.dynamoDbReadsPerMillion,
    '$0.625': PRICES.dynamoDbWritesPerMillion,
    '$0.20': PRICES.lambdaRequestsPerMillion,
  };
  const rows = guideRows();
  const from = rows.findIndex(([head]) => head === 'for each node') + 2;
  const to = rows.findIndex(([what], index) => index > from && what === 'together');
  let [calls, dollars] = [0, 0];
  for (const [what = '', count = '', units = '', price = '', cost = ''] of rows.slice(from, to)) {
    calls += Number(count);
    if (!/(requests|reads|writes)$/.test(units)) {
      dollars += Number.parseFloat(cost);
      continue;
    }
    const unitPrice = prices[price] ?? assert.fail(`${what}: no price is ${price}`);
    const amount = Number(/(\d+) \w+$/.exec(units)?.[1]);
    const exact = NODES_OF_A_MILLION * perMillion(amount, unitPrice);
    assert.ok(Math.abs(Number(cost) - exact) <= 0.005001, `${what}: $${exact.toFixed(3)}, not ${cost}`);
    dollars += exact;
  }
  const [, together = '', , , total = ''] = rows[to] ?? [];
  assert.equal(together, `${calls}: ${(calls / 50).toFixed(2)} per pod`);
  assert.ok(Math.abs(Number.parseFloat(total) - dollars) <= 0.02, `$${money(dollars)}, not ${total}`);
});
