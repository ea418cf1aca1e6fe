import { type Command, InvalidArgumentError, Option } from 'commander';
import { UsageError } from '#shared/operations/fleet/fleet.ts';
import {
  NODE_CONTROLLER_KEYS,
  NODE_TAKEOVER,
  type NodeTakeover,
} from '#shared/operations/takeover/at-nodes.ts';

export interface TakeoverOptions {
  readonly keys?: readonly string[];
  readonly heartbeatTimeout?: number;
}

const MAX_SECONDS = 2 ** 31 - 1;

export function addTakeoverOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--keys <keys>',
        'taint keys, separated by commas (default: not-ready and unreachable)',
      ).argParser((text) => text.split(',').map((key) => key.trim())),
    )
    .option(
      '--heartbeat-timeout <seconds>',
      `seconds without a heartbeat after which the built-in controller evicts (default: ${NODE_TAKEOVER.lapseSeconds})`,
      seconds,
    );
}

/** Returns the takeover that the flags define. Throws `UsageError` if a key cannot be taken over. */
export function parseTakeover({ keys, heartbeatTimeout }: TakeoverOptions): NodeTakeover {
  const strange = keys?.find((key) => !NODE_CONTROLLER_KEYS.includes(key));
  if (strange !== undefined) {
    throw new UsageError(
      `--keys: "${strange}" cannot be taken over. Specify ${NODE_CONTROLLER_KEYS.join(' or ')}.`,
    );
  }
  return {
    keys: keys ?? NODE_TAKEOVER.keys,
    lapseSeconds: heartbeatTimeout ?? NODE_TAKEOVER.lapseSeconds,
  };
}

function seconds(text: string): number {
  const value = Number(text);
  if (/^[1-9]\d*$/.test(text) && value <= MAX_SECONDS) return value;
  throw new InvalidArgumentError(`It is a whole number of seconds from 1 to ${MAX_SECONDS}.`);
}
