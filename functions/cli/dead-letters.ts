import { type Command, InvalidArgumentError, Option } from 'commander';
import { QUEUES } from '#shared/aws/queue-set.ts';
import type { Preview } from '#shared/operations/acts/preview.ts';
import { agentOfQueue } from '#shared/operations/fleet/agent-queues.ts';
import type { DeadLetter } from '#shared/operations/fleet/dead-letters.ts';
import { type Fleet, UsageError } from '#shared/operations/fleet/fleet.ts';
import { timeText } from '#shared/time/time-text.ts';
import { type CliDeps, CliError, confirmed } from './command.ts';
import { addDryRun, type DryRunOptions, printPreviews } from './dry-run.ts';
import {
  type Column,
  linesText,
  type OutputFormat,
  outputOption,
  shownAs,
  tableOf,
  tableText,
  withExamples,
} from './output.ts';
import { withFleet } from './with-fleet.ts';

/** Default number of messages to read. Every ten need one call. */
const DEFAULT_LIMIT = 100;
const MAX_LETTERS = 1_000;
const QUEUE_NAMES: readonly string[] = Object.values(QUEUES).map(({ name }) => name);
/** Dead letters that come from a stream instead of a queue. */
const EXPIRY = 'expiry';

interface ListOptions {
  readonly queue?: string;
  readonly limit: number;
  readonly output: OutputFormat;
}

interface PurgeOptions extends RedriveOptions {
  readonly yes: boolean;
}

interface RedriveOptions extends DryRunOptions {
  readonly queue?: string;
  readonly limit: number;
  readonly all: boolean;
}

/** `taintward dead-letters`: messages that no consumer could handle. */
export function addDeadLettersCommand(program: Command, deps: CliDeps): void {
  const letters = program
    .command('dead-letters')
    .summary('Manage dead-letter messages')
    .description('Manage dead-letter messages: messages that could not be read or processed.');
  addList(letters, deps);
  addShow(letters, deps);
  addRedrive(letters, deps);
  addPurge(letters, deps);
}

function addList(letters: Command, deps: CliDeps): void {
  const command = letters
    .command('list')
    .summary('List dead-letter messages')
    .description(
      'List dead-letter messages, oldest first. On AWS, the listed messages are invisible to other readers for up to ten seconds.',
    )
    .addOption(queueOption())
    .addOption(limitOption())
    .addOption(outputOption());
  withExamples(
    command,
    'taintward dead-letters list',
    'taintward dead-letters list --queue evictions-due -o json',
  ).action(() =>
    withFleet<ListOptions>(command, deps, async (fleet, { queue, limit, output }) => {
      const found = await fleet.deadLetters.list(limit, queue);
      deps.print(
        shownAs(output, {
          data: () => found.map(letterJson),
          text: (wide) =>
            found.length === 0
              ? 'No dead-letter messages.\n'
              : tableOf(found, COLUMNS, { wide, paint: deps.paint }),
        }),
      );
      const hidden = found.length < limit ? (await counted(fleet, queue)) - found.length : 0;
      if (hidden > 0) deps.complain(notShown(hidden));
    }),
  );
}

function addShow(letters: Command, deps: CliDeps): void {
  const command = letters
    .command('show')
    .summary('Show a dead-letter message')
    .description('Show a dead-letter message.')
    .argument('<id>', 'message ID from list, or its first characters')
    .addOption(queueOption())
    .addOption(limitOption())
    .addOption(outputOption());
  withExamples(command, 'taintward dead-letters show 7').action((id: string) =>
    withFleet<ListOptions>(command, deps, async (fleet, { queue, limit, output }) => {
      const letter = await letterOf(id, fleet, limit, queue);
      deps.print(
        shownAs(output, {
          data: () => letterJson(letter),
          text: () =>
            tableText([
              ['ID', letter.id],
              ['QUEUE', letter.queue],
              ['SINCE', timeText(letter.at)],
              ['REASON', whyText(letter)],
              ['MESSAGE', JSON.stringify(bodyOf(letter))],
            ]),
        }),
      );
    }),
  );
}

function addRedrive(letters: Command, deps: CliDeps): void {
  const command = letters
    .command('redrive')
    .summary('Send dead-letter messages to their queue again')
    .description(
      'Send dead-letter messages to their queue again. This is safe at any age: the current state decides.',
    )
    .argument('[id]', 'message ID from list, or its first characters')
    .addOption(queueOption())
    .addOption(limitOption())
    .option('--all', 'messages of all queues', false);
  withExamples(
    addDryRun(command),
    'taintward dead-letters redrive 7',
    'taintward dead-letters redrive --queue evictions-due',
    'taintward dead-letters redrive --all',
  ).action((id: string | undefined) =>
    withFleet<RedriveOptions>(command, deps, async (fleet, { queue, limit, all, ...options }) => {
      if (id !== undefined && !all) {
        const letter = await letterOf(id, fleet, limit, queue);
        await fleet.deadLetters.redriveOne(letter, options);
        if (options.dryRun) {
          const change = `Dead-letter message ${letter.id} is sent to ${letter.queue} again.`;
          printPreviews([{ change, effects: [] }], options, deps);
          return;
        }
        deps.print(linesText([`Sent dead-letter message ${letter.id} to ${letter.queue} again.`]));
        return;
      }
      refuseSeveral(id, queue, all);
      const queues = queue === undefined ? await redrivable(fleet) : [queue];
      const previews: Preview[] = [];
      for (const each of queues) {
        deps.progress(`${options.dryRun ? 'Counting' : 'Redriving'} the dead-letter messages of ${each}`);
        const count = await fleet.deadLetters.redrive(each, options);
        previews.push(...redrivePreview(each, count));
        if (options.dryRun) continue;
        deps.print(
          count === 0
            ? `No dead-letter messages of ${each}.\n`
            : `Sent about ${count} dead-letter messages to ${each} again. To list messages that fail again, run taintward dead-letters list.\n`,
        );
      }
      if (options.dryRun) printPreviews(previews, options, deps);
    }),
  );
}

/** Returns the effect of a redrive. Empty: the queue has no dead letters. */
const redrivePreview = (queue: string, count: number): readonly Preview[] =>
  count === 0
    ? []
    : [
        {
          change: `About ${countText(count)} ${count === 1 ? 'is' : 'are'} sent to ${queue} again.`,
          effects: [],
        },
      ];

function addPurge(letters: Command, deps: CliDeps): void {
  const command = letters
    .command('purge')
    .summary('Delete dead-letter messages')
    .description(
      'Delete dead-letter messages. The command first prints the messages and the consequences. A queue is emptied, including messages that arrive meanwhile.',
    )
    .argument('[id]', 'message ID from list, or its first characters')
    .addOption(queueOption())
    .addOption(limitOption())
    .option('--all', 'messages of all queues', false)
    .option('--yes', 'skip the confirmation', false);
  withExamples(
    addDryRun(command),
    'taintward dead-letters purge 7',
    'taintward dead-letters purge --queue node-deltas.fifo',
    'taintward dead-letters purge --all --yes',
  ).action((id: string | undefined) =>
    withFleet<PurgeOptions>(command, deps, async (fleet, { queue, limit, all, yes, ...options }) => {
      const { deadLetters } = fleet;
      if (id !== undefined && !all) {
        const letter = await letterOf(id, fleet, limit, queue);
        const loss = purgePreview({ queue: letter.queue, count: 1, letters: [letter] });
        if (options.dryRun) {
          printPreviews([loss], options, deps);
          return;
        }
        deps.print(lossText(loss));
        await mustConfirm(yes, deps);
        await deadLetters.purgeOne(letter);
        deps.print(linesText([`Deleted dead-letter message ${letter.id} of ${letter.queue}.`]));
        return;
      }
      refuseSeveral(id, queue, all);
      const found = Map.groupBy(await deadLetters.list(limit, queue), (letter) => letter.queue);
      const counts = (await deadLetters.count()) ?? new Map<string, number>();
      const queues = queue === undefined ? [...new Set([...found.keys(), ...counts.keys()])] : [queue];
      const meant = queues.filter((each) => found.has(each) || (counts.get(each) ?? 0) > 0);
      const losses = meant.map((each) => {
        const letters = found.get(each) ?? [];
        return purgePreview({
          ...{ queue: each, letters },
          count: Math.max(letters.length, counts.get(each) ?? 0),
        });
      });
      if (options.dryRun) {
        printPreviews(losses, options, deps);
        return;
      }
      if (meant.length === 0) {
        deps.print(
          queue === undefined ? 'No dead-letter messages.\n' : `No dead-letter messages of ${queue}.\n`,
        );
        return;
      }
      for (const loss of losses) deps.print(lossText(loss));
      await mustConfirm(yes, deps);
      for (const each of meant) {
        deps.progress(`Deleting the dead-letter messages of ${each}`);
        const deleted = await deadLetters.purge(each);
        deps.print(`Deleted ${countText(deleted)} of ${each}.\n`);
      }
    }),
  );
}

function refuseSeveral(id: string | undefined, queue: string | undefined, all: boolean): void {
  if (id === undefined && (queue === undefined) === all) return;
  throw new UsageError('Specify exactly one of ID, --queue, or --all.');
}

async function mustConfirm(yes: boolean, { confirm }: CliDeps): Promise<void> {
  if (yes || (await confirmed('Delete them? They cannot be restored.', confirm))) return;
  throw new CliError('Canceled. Nothing was changed.');
}

/** Number of reasons that are shown before dead letters are deleted. */
const MAX_REASONS = 10;

/** A preview before the dead letters of a queue are deleted. */
interface PurgePreview extends Preview {
  /** The dead letters and the consequence, without their reasons. */
  readonly loss: string;
}

/** The dead letters of a queue, as far as they were read, and their approximate number. */
interface QueueLetters {
  readonly queue: string;
  readonly count: number;
  readonly letters: readonly DeadLetter[];
}

/** Returns the effect of a purge. */
function purgePreview({ queue, count, letters }: QueueLetters): PurgePreview {
  const reasons = [...Map.groupBy(letters, whyText)].sort(([, a], [, b]) => b.length - a.length);
  const hidden = reasons.length - MAX_REASONS;
  const outcome = outcomeText(queue);
  return {
    loss: `${countText(count)} of ${queue}. ${outcome}`,
    change: `${countText(count)} of ${queue} ${count === 1 ? 'is' : 'are'} deleted. ${outcome}`,
    effects: [
      ...reasons.slice(0, MAX_REASONS).map(([reason, { length }]) => `${length}: ${reason}`),
      ...(hidden > 0 ? [`${hidden} more reasons: see taintward dead-letters list.`] : []),
    ],
  };
}

/** Returns a warning before the dead letters of a queue are deleted. */
const lossText = ({ loss, effects }: PurgePreview): string =>
  linesText([loss, ...effects.map((each) => `  ${each}`)]);

const countText = (count: number): string =>
  count === 1 ? '1 dead-letter message' : `${count} dead-letter messages`;

/** Returns the consequence for the evictions behind the dead letters of a queue. */
function outcomeText(queue: string): string {
  if (queue === EXPIRY) return 'The next resync, within 10 minutes, schedules their evictions again.';
  if (queue === QUEUES.evictionsDue.name || agentOfQueue(queue) !== undefined)
    return 'Failed evictions stay failed until taintward retry. The next resync, within 10 minutes, repeats other work.';
  return 'The next resync, within 10 minutes, sends the same changes again.';
}

/**
 * Returns the approximate number of dead letters, of one queue or all. Returns 0 if only another process can
 * count them, or if the caller lacks the permission to count all.
 */
async function counted({ deadLetters }: Fleet, queue?: string): Promise<number> {
  const counts = (await deadLetters.count().catch(() => undefined)) ?? new Map<string, number>();
  if (queue !== undefined) return counts.get(queue) ?? 0;
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/**
 * SQS locks the message group of received messages. While the first ten deltas of a node are in flight, no
 * reader gets the eleventh.
 */
const notShown = (hidden: number): string =>
  `About ${hidden} messages are not shown. SQS shows at most ten dead-letter messages of a node, and none while another client reads them. To send all again, run taintward dead-letters redrive --queue NAME.\n`;

/** Returns the queues of every deployment, and the queues of agents that have dead letters. */
async function redrivable({ deadLetters }: Fleet): Promise<readonly string[]> {
  const counted = [...((await deadLetters.count())?.keys() ?? [])];
  return [...QUEUE_NAMES, ...counted.filter(agentOfQueue)];
}

async function letterOf(id: string, fleet: Fleet, limit: number, queue?: string): Promise<DeadLetter> {
  const found = (await fleet.deadLetters.list(limit, queue)).filter((each) => each.id.startsWith(id));
  const [letter, ...more] = found.some((each) => each.id === id)
    ? found.filter((each) => each.id === id)
    : found;
  if (letter === undefined) {
    throw new CliError(
      `Dead-letter message "${id}" not found in the first ${limit} messages of each queue. To search more, raise --limit.`,
    );
  }
  if (more.length === 0) return letter;
  throw new CliError(
    `ID "${id}" is ambiguous: it matches ${more.length + 1} messages. Specify more characters.`,
  );
}

const queueOption = (): Option => {
  const option = new Option('--queue <name>', 'queue name; an agent has agent-ID-evictions-due');
  const names = [...QUEUE_NAMES, EXPIRY];
  // Completion and help list only the names that every deployment has.
  return option.choices(names).argParser((name: string) => {
    if (names.includes(name) || agentOfQueue(name) !== undefined) return name;
    throw new InvalidArgumentError(
      `Allowed choices are ${names.join(', ')}, and agent-ID-evictions-due of an agent.`,
    );
  });
};

const limitOption = (): Option =>
  new Option('--limit <number>', 'maximum number of messages per queue')
    .argParser((text) => {
      const limit = Number(text);
      if (Number.isInteger(limit) && limit > 0 && limit <= MAX_LETTERS) return limit;
      throw new InvalidArgumentError(`It is a number from 1 to ${MAX_LETTERS}.`);
    })
    .default(DEFAULT_LIMIT);

const COLUMNS: readonly Column<DeadLetter>[] = [
  { head: 'ID', of: ({ id }) => id },
  { head: 'QUEUE', of: ({ queue }) => queue },
  { head: 'SINCE', of: ({ at }) => timeText(at) },
  { head: 'REASON', of: whyText },
  { head: 'MESSAGE', of: (letter) => JSON.stringify(bodyOf(letter)), wide: true },
];

function whyText({ reason }: DeadLetter): string {
  return reason ?? 'received too often; for the cause, see the log of its function';
}

/** Returns the parsed body, or the text if it isn't JSON. */
function bodyOf({ body }: DeadLetter): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}

const letterJson = (letter: DeadLetter): object => ({
  ...{ id: letter.id, queue: letter.queue, since: timeText(letter.at) },
  ...{ reason: letter.reason, body: bodyOf(letter) },
});
