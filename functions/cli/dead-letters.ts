import { type Command, InvalidArgumentError, Option } from 'commander';
import { QUEUES } from '#shared/aws/queue-set.ts';
import { agentOfQueue } from '#shared/operations/fleet/agent-queues.ts';
import type { DeadLetter, DeadLetterBox } from '#shared/operations/fleet/dead-letters.ts';
import { type Fleet, FleetError, UsageError } from '#shared/operations/fleet/fleet.ts';
import { timeText } from '#shared/time/time-text.ts';
import type { CliDeps } from './command.ts';
import { type Column, listShown, outputOption, withExamples } from './output.ts';
import { printFleet, showFleet, withFleet } from './with-fleet.ts';

/** Every ten need one call. */
const DEFAULT_LIMIT = 100;
const MAX_LETTERS = 1_000;
const QUEUE_NAMES: readonly string[] = Object.values(QUEUES).map(({ name }) => name);
/** Dead letters that come from a stream instead of a queue. */
const EXPIRY = 'expiry';

interface ListOptions {
  readonly queue?: string;
  readonly limit: number;
}

/** `taintward dead-letters`: messages that no consumer could handle. */
export function addDeadLettersCommand(program: Command, deps: CliDeps): void {
  const letters = program
    .command('dead-letters')
    .summary('Manage dead-letter messages')
    .description('Manage dead-letter messages: messages that could not be read or processed.');
  addList(letters, deps);
  addRedrive(letters, deps);
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
    showFleet<ListOptions>(command, deps, async (fleet, { queue, limit }) => {
      const letters = lettersOf(fleet);
      const found = await letters.list(limit, queue);
      const data = () => found.map(letterOutput);
      const hidden = found.length < limit ? (await counted(letters, queue)) - found.length : 0;
      if (hidden > 0) deps.complain(notShown(hidden));
      return listShown(found, COLUMNS, 'No dead-letter messages.', data);
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
    .addOption(queueOption())
    .option('--all', 'messages of all queues', false);
  withExamples(
    command,
    'taintward dead-letters redrive --queue evictions-due',
    'taintward dead-letters redrive --all',
  ).action(() =>
    withFleet<{ queue?: string; all: boolean }>(command, deps, async (fleet, { queue, all }) => {
      await printFleet(fleet, deps);
      if ((queue === undefined) !== all) throw new UsageError('Specify either --queue or --all.');
      const letters = lettersOf(fleet);
      for (const name of queue === undefined ? await redrivable(letters) : [queue]) {
        deps.progress(`Redriving the dead-letter messages of ${name}`);
        const count = await letters.redrive(name);
        deps.print(
          count === 0
            ? `No dead-letter messages of ${name}.\n`
            : `Sent about ${count} dead-letter messages to ${name} again. To list messages that fail again, run taintward dead-letters list.\n`,
        );
      }
    }),
  );
}

function lettersOf({ deadLetters }: Fleet): DeadLetterBox {
  if (deadLetters) return deadLetters;
  throw new FleetError(
    'A service in one process or in its cluster has no dead-letter messages. To list failed evictions, run "taintward pending"; to retry them, run "taintward retry".',
  );
}

/** Approximate. 0: only another process can count them, or the caller lacks the permission to count all. */
async function counted(letters: DeadLetterBox, queue?: string): Promise<number> {
  const counts = (await letters.count().catch(() => undefined)) ?? new Map<string, number>();
  if (queue !== undefined) return counts.get(queue) ?? 0;
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** SQS locks the group of received messages: while ten deltas of a node are in flight, no reader gets the eleventh. */
const notShown = (hidden: number): string =>
  `About ${hidden} messages are not shown. SQS shows at most ten dead-letter messages of a node, and none while another client reads them. To send all again, run taintward dead-letters redrive --queue NAME.\n`;

/** Returns the queues of every deployment, and the queues of agents that have dead letters. */
async function redrivable(letters: DeadLetterBox): Promise<readonly string[]> {
  const counted = [...((await letters.count())?.keys() ?? [])];
  return [...QUEUE_NAMES, ...counted.filter(agentOfQueue)];
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

function bodyOf({ body }: Pick<DeadLetter, 'body'>): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}

const letterOutput = ({ at, ...letter }: DeadLetter) => ({ ...letter, since: at, body: bodyOf(letter) });
export type LetterOutput = ReturnType<typeof letterOutput>;
