import { timeText } from '#shared/time/time-text.ts';
import { VERSION } from '#shared/version.ts';
import { type AlarmSeen, FED_FUNCTIONS, type Quotas } from '../fleet/account.ts';
import { bad, type ClusterFinding, ok, warn } from './finding.ts';

/** Of `heartbeat`, and of `expiry`, which reads the shards of the table's stream one at a time. */
const OTHER_INVOCATIONS = 2;
/** Write units of a scheduled pod: its record and its share of the transaction. */
const WRITES_PER_POD = 2;
/** Requirements of fleets with more nodes than this, largest first, as in docs/reference/quotas-and-costs.md. */
const SIZES = [
  { nodes: 20_000, concurrency: 500, writesAtOnce: 20_000 },
  { nodes: 5_000, concurrency: 200, writesAtOnce: 0 },
] as const;

/** Checks that quotas suffice for the configuration, and the configuration for a fleet of this size. */
export function quotaFindings(
  { invocations, batches, writesAtOnce, mostWrites }: Quotas,
  nodes: number,
): readonly ClusterFinding[] {
  const used = FED_FUNCTIONS.reduce((sum, name) => sum + batches[name], OTHER_INVOCATIONS);
  const lambda = `Lambda runs ${invocations} concurrent invocations of functions without reserved concurrency, and the service uses up to ${used}`;
  const atOnce =
    writesAtOnce === undefined
      ? 'an unknown number'
      : `${writesAtOnce} (${Math.floor(writesAtOnce / WRITES_PER_POD)} scheduled pods)`;
  const table = `The table accepts up to ${mostWrites} writes per second when scaled, and immediately ${atOnce}.`;
  const size = SIZES.find((each) => nodes > each.nodes);
  return [
    invocations >= used
      ? ok('quotas', `${lambda}.`)
      : warn(
          'quotas',
          `${lambda}: further batches are throttled and delayed.`,
          'Request a higher Lambda quota for concurrent executions, or lower taintward:concurrency.',
        ),
    size === undefined || (writesAtOnce ?? Infinity) >= size.writesAtOnce
      ? ok('quotas', table)
      : warn(
          'quotas',
          `${table} The fleet has ${nodes} nodes.`,
          `Set a warm throughput of ${size.writesAtOnce} writes on the table and its index before tainting many nodes together.`,
        ),
    size !== undefined &&
      FED_FUNCTIONS.some((name) => batches[name] < size.concurrency) &&
      warn(
        'quotas',
        `The fleet has ${nodes} nodes, and the functions process fewer concurrent batches than that requires.`,
        `Deploy with taintward:concurrency ${size.concurrency}.`,
      ),
  ].filter((finding) => finding !== false);
}

/** Checks for firing alarms, and for alarms without receivers. */
export function alarmFindings(alarms: readonly AlarmSeen[]): readonly ClusterFinding[] {
  if (alarms.length === 0) {
    return [warn('alarms', 'The alarms of the stack were removed.', 'Deploy the stack again.')];
  }
  const silent = alarms.filter(({ receivers }) => receivers === 0);
  const blind = alarms.filter(({ state }) => state === 'INSUFFICIENT_DATA');
  return [
    ...alarms
      .filter(({ state }) => state === 'ALARM')
      .map(({ name, since, description }) =>
        bad('alarms', `Firing since ${timeText(since)}: ${name}.`, description),
      ),
    silent.length === 0
      ? ok(
          'alarms',
          `All ${alarms.length} alarms have an action. Whether subscriptions of its topic are confirmed is not checked.`,
        )
      : warn(
          'alarms',
          `${silent.length} of ${alarms.length} alarms have no subscribers.`,
          'Deploy with taintward:alarmTopicArn, an SNS topic with subscribers.',
        ),
    blind.length > 0 &&
      ok(
        'alarms',
        `${blind.length} of ${alarms.length} alarms have no data yet, as in the first minutes after a deployment.`,
      ),
  ].filter((finding) => finding !== false);
}

/** Checks that functions, relays, and this command have the same release; `undefined`: unknown. */
export function versionFindings(
  release: string | undefined,
  relays: readonly (string | undefined)[],
): readonly ClusterFinding[] {
  const others = [...new Set(relays)].filter((version) => version !== release);
  const found: ClusterFinding[] = [];
  if (release === undefined) {
    found.push(
      warn(
        'versions',
        'The release of the functions is unknown.',
        'Deploy the release of this command, which reports it.',
      ),
    );
  } else if (release !== VERSION) {
    found.push(
      warn(
        'versions',
        `The functions are ${release}, this command is ${VERSION}.`,
        'Deploy this release, or use the command of the deployed release.',
      ),
    );
  }
  if (release !== undefined && others.length > 0) {
    const names = others.map((version) => version ?? 'unknown').join(', ');
    found.push(
      warn(
        'versions',
        `The functions are ${release}, but relays are ${names}.`,
        'Restart your own relays with the release of the functions. Relays of the stack are replaced automatically.',
      ),
    );
  }
  if (found.length > 0) return found;
  return [
    ok('versions', `Functions${relays.length > 0 ? ', relays,' : ''} and this command are ${VERSION}.`),
  ];
}
