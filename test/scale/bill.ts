import { WAIT_SECONDS } from '#functions/agent/due-source.ts';
import { HOURS_A_MONTH, PRICES, perMillion, SECONDS_A_MONTH } from '#test/costs/prices.ts';
import { idleUnitsOf, type ModelInput, ratesOf } from './model.ts';

/** Dollars of one thing. */
export interface Cost {
  readonly what: string;
  readonly dollars: number;
}

const BYTES_PER_GB = 1024 ** 3;

/** What a fleet costs in a month in which nothing is tainted. */
export function monthly({ fleet, settings, constants }: ModelInput): readonly Cost[] {
  const { reads, writes } = idleUnitsOf(fleet, settings.relayCount, constants);
  const minutes = SECONDS_A_MONTH / 60;
  const { relayCount, relayCpu, relayMemoryMiB } = settings;
  const hour =
    (relayCpu / 1024) * PRICES.fargateArmVcpuHour + (relayMemoryMiB / 1024) * PRICES.fargateArmGbHour;
  return [
    {
      what: 'reads of leases, registry and what governs clusters',
      dollars: perMillion(reads * minutes, PRICES.dynamoDbReadsPerMillion),
    },
    { what: 'writes of leases', dollars: perMillion(writes * minutes, PRICES.dynamoDbWritesPerMillion) },
    { what: 'relays on Fargate', dollars: relayCount * hour * HOURS_A_MONTH },
    { what: 'their public addresses', dollars: relayCount * PRICES.publicAddressHour * HOURS_A_MONTH },
    {
      what: 'polls of event sources, `heartbeat`, alarms, dashboard, metrics',
      dollars: Object.values(constants.fixed).reduce((sum, each) => sum + each, 0),
    },
  ];
}

/** Replicas of an agent, as its chart has it, and the alarms of its stack. */
const AGENT_REPLICAS = 2;
export const ALARMS_OF_AGENT = 4;

/** What an agent costs in a month in which nothing is due, beside what the table has of any cluster. */
export const agentMonthly = (): readonly Cost[] => [
  {
    what: 'polls of its queue',
    dollars: perMillion((AGENT_REPLICAS * SECONDS_A_MONTH) / WAIT_SECONDS, PRICES.sqsStandardPerMillion),
  },
  { what: 'its alarms', dollars: ALARMS_OF_AGENT * PRICES.alarm },
];

/** What evictions cost beyond that: in a month, or as long as the scenario lasts. */
export function evictions(input: ModelInput): readonly Cost[] {
  const { fleet, scenario, constants } = input;
  const { tainted, counts } = ratesOf(input);
  const seconds = scenario.lasts?.(fleet) ?? SECONDS_A_MONTH;
  const million = (perSecond: number, price: number) => perMillion(perSecond * seconds, price);
  const { nodeDeltas, podDeltas, due } = counts;
  return [
    { what: 'writes', dollars: million(counts.writes, PRICES.dynamoDbWritesPerMillion) },
    { what: 'reads', dollars: million(counts.reads, PRICES.dynamoDbReadsPerMillion) },
    {
      what: 'queues',
      dollars:
        million(nodeDeltas.requests + podDeltas.requests, PRICES.sqsFifoPerMillion) +
        million(due.requests, PRICES.sqsStandardPerMillion),
    },
    {
      what: 'functions',
      dollars:
        million(counts.deltaInvocations + counts.evictInvocations, PRICES.lambdaRequestsPerMillion) +
        tainted * fleet.pods * constants.computing * seconds * PRICES.lambdaArmPerGbSecond,
    },
    { what: 'logs', dollars: ((counts.logBytes * seconds) / BYTES_PER_GB) * PRICES.logsPerGb },
  ];
}

export const sum = (costs: readonly Cost[]): number =>
  costs.reduce((total, { dollars }) => total + dollars, 0);
