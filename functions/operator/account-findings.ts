import { VERSION } from '#shared/version.ts';
import { type AlarmSeen, FED_FUNCTIONS, type Quotas } from './account.ts';
import { bad, ok, type Told, warn } from './finding.ts';

/** `expiry`, which reads the table's stream a shard at a time, and `heartbeat`. */
const OTHER_INVOCATIONS = 2;
/** What a pod costs when it is scheduled: its record, and its share of the transaction. */
const WRITES_PER_POD = 2;
/** What fleets of more than so many nodes need, the largest first: the table in docs/how-to/run-on-aws.md says it to people. */
const SIZES = [
  { nodes: 20_000, evictBatches: 500, deltaBatches: 100, writesAtOnce: 20_000 },
  { nodes: 5_000, evictBatches: 200, deltaBatches: 0, writesAtOnce: 0 },
] as const;

/** Whether what the account allows is enough for what is configured, and that for a fleet of so many nodes. */
export function quotaFindings(
  { invocations, batches, reserved = {}, writesAtOnce, mostWrites }: Quotas,
  nodes: number,
): readonly Told[] {
  const fed = FED_FUNCTIONS.map((name) => ({ name, batches: batches[name], kept: reserved[name] }));
  const kept = fed.reduce((sum, { kept: each = 0 }) => sum + each, 0);
  const used = fed.reduce(
    (sum, each) => sum + (each.kept === undefined ? each.batches : 0),
    OTHER_INVOCATIONS,
  );
  const besides = kept === 0 ? '' : `, beside ${kept} that are reserved for it`;
  const lambda = `Lambda runs ${invocations} invocations at a time for functions that have none reserved, and the service uses up to ${used}${besides}`;
  const throttled = fed.filter((each) => each.kept !== undefined && each.kept < each.batches);
  const atOnce =
    writesAtOnce === undefined
      ? 'nobody says how many'
      : `${writesAtOnce}, or ${Math.floor(writesAtOnce / WRITES_PER_POD)} pods that are scheduled`;
  const table = `The table takes up to ${mostWrites} writes a second once it has grown, and at once ${atOnce}.`;
  const size = SIZES.find((each) => nodes > each.nodes);
  return [
    invocations >= used
      ? ok('quotas', `${lambda}.`)
      : warn(
          'quotas',
          `${lambda}: beyond that its batches are throttled, and late.`,
          'Have the quota Concurrent executions of Lambda raised, or lower taintward:evictConcurrency and taintward:deltaConcurrency.',
        ),
    ...throttled.map(({ name, batches: count, kept: each }) =>
      warn(
        'quotas',
        `Lambda runs ${each} invocations of ${name} at a time, and its queue is to have ${count}: beyond that its batches are throttled, and late.`,
        'Deploy anew: with taintward:reserveConcurrency the stack reserves as many as the queue is to have, without it none.',
      ),
    ),
    size === undefined || (writesAtOnce ?? Infinity) >= size.writesAtOnce
      ? ok('quotas', table)
      : warn(
          'quotas',
          `${table} The fleet has ${nodes} nodes.`,
          `Set a warm throughput of ${size.writesAtOnce} writes on the table, before many nodes are tainted at a time.`,
        ),
    ...(size === undefined ? [] : concurrencyFindings(batches, size, nodes)),
  ];
}

function concurrencyFindings(
  batches: Quotas['batches'],
  { evictBatches, deltaBatches }: (typeof SIZES)[number],
  nodes: number,
): readonly Told[] {
  const low = [
    ...(batches.evict < evictBatches ? [`taintward:evictConcurrency ${evictBatches}`] : []),
    ...(Math.min(batches['node-delta'], batches['pod-delta']) < deltaBatches
      ? [`taintward:deltaConcurrency ${deltaBatches}`]
      : []),
  ];
  if (low.length === 0) return [];
  return [
    warn(
      'quotas',
      `The fleet has ${nodes} nodes, and the functions handle fewer batches at a time than that is worth.`,
      `Deploy with ${low.join(' and ')}.`,
    ),
  ];
}

/** Which alarms ring, and whether anybody hears them. */
export function alarmFindings(alarms: readonly AlarmSeen[]): readonly Told[] {
  if (alarms.length === 0) {
    return [warn('alarms', 'There is none of its name.', 'Deploy the stack anew: somebody removed them.')];
  }
  const deaf = alarms.filter(({ receivers }) => receivers === 0);
  const blind = alarms.filter(({ state }) => state === 'INSUFFICIENT_DATA');
  const some = (of: readonly AlarmSeen[]) => (of.length === alarms.length ? 'all' : `${of.length}`);
  return [
    ...alarms
      .filter(({ state }) => state === 'ALARM')
      .map(({ name, since, says }) =>
        bad('alarms', `It rings since ${new Date(since).toISOString()}: ${name}.`, says),
      ),
    deaf.length === 0
      ? ok('alarms', `All ${alarms.length} tell somebody when they ring.`)
      : warn(
          'alarms',
          `Of ${alarms.length}, ${some(deaf)} tell nobody when they ring.`,
          'Deploy with taintward:alarmTopicArn: an SNS topic to which somebody is subscribed.',
        ),
    ...(blind.length === 0
      ? []
      : [ok('alarms', `Of ${alarms.length}, ${some(blind)} have no data yet, as in the first minutes.`)]),
  ];
}

/**
 * Whether functions, relays and this command are of one release. `release`: of the functions; `undefined`: it is not known.
 * `relays`: the release of each relay that speaks for a cluster, likewise.
 */
export function versionFindings(
  release: string | undefined,
  relays: readonly (string | undefined)[],
): readonly Told[] {
  const others = [...new Set(relays)].filter((version) => version !== release);
  const found: Told[] = [];
  if (release === undefined) {
    found.push(
      warn(
        'versions',
        'Of which release the functions are is not said.',
        'Deploy the release of this command: it says so from then on.',
      ),
    );
  } else if (release !== VERSION) {
    found.push(
      warn(
        'versions',
        `The functions are ${release}, and this command ${VERSION}.`,
        'Deploy this release, or use the command of theirs.',
      ),
    );
  }
  if (release !== undefined && others.length > 0) {
    const names = others.map((version) => version ?? 'of one that does not say which').join(', ');
    found.push(
      warn(
        'versions',
        `The functions are ${release}, and there are relays ${names}.`,
        'Restart relays of your own with the release of the functions; those of the stack are replaced after them.',
      ),
    );
  }
  if (found.length > 0) return found;
  return [
    ok('versions', `Functions${relays.length > 0 ? ' and relays' : ''} are ${VERSION}, as this command is.`),
  ];
}
