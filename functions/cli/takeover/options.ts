import { type Command, InvalidArgumentError, Option } from 'commander';
import { UsageError } from '#shared/operations/fleet/fleet.ts';
import {
  NODE_CONTROLLER_KEYS,
  NODE_TAKEOVER,
  type NodeTakeover,
} from '#shared/operations/takeover/at-nodes.ts';
import { POD_TAKEOVER, type PodTakeover, TAKEOVER_LABEL } from '#shared/operations/takeover/at-pods.ts';
import { parseLabelSelector } from '#shared/operations/takeover/label-selector.ts';
import type { Requirement } from '#shared/operations/takeover/manifest.ts';

/** Flags that define a takeover. */
export interface TakeoverOptions {
  readonly level: Way;
  readonly keys?: readonly string[];
  readonly heartbeatTimeout?: number;
  readonly fallbackDelay?: number;
  readonly namespaceSelector?: readonly Requirement[];
}

export type Way = 'node' | 'pod';

export type Takeover =
  | { readonly at: 'node'; readonly spec: NodeTakeover }
  | { readonly at: 'pod'; readonly spec: PodTakeover };

/** Characters of the node controller's keys, and the longest key that fits an entry of a note. */
const KEY = /^[A-Za-z0-9._/-]{1,317}$/;
/** Maximum for the two numbers of seconds in a note, which have at most ten digits. */
const MAX_SECONDS = 2 ** 31 - 1;

/** `--level node|pod`. */
export const wayOption = (): Option =>
  new Option(
    '--level <level>',
    'level of the takeover: all nodes that are down (Kubernetes 1.36), or pods of chosen namespaces',
  )
    .choices(['node', 'pod'])
    .default('node');

export function addTakeoverOptions(command: Command): Command {
  return command
    .addOption(wayOption())
    .addOption(
      new Option(
        '--keys <keys>',
        'taint keys, separated by commas (default: not-ready and unreachable)',
      ).argParser((text) => text.split(',').map((key) => key.trim())),
    )
    .option(
      '--heartbeat-timeout <seconds>',
      `node level: seconds without a heartbeat after which the built-in controller evicts (default: ${NODE_TAKEOVER.lapseSeconds})`,
      seconds,
    )
    .option(
      '--fallback-delay <seconds>',
      `pod level: seconds by which the built-in controller's deadline is later than ours (default: ${POD_TAKEOVER.fallbackSeconds})`,
      seconds,
    )
    .addOption(
      new Option(
        '--namespace-selector <labels>',
        `pod level: label selector of namespaces (default: ${TAKEOVER_LABEL}=enabled)`,
      ).argParser(parseLabelSelector),
    );
}

/** Returns the takeover that the flags define. Throws `UsageError` if they contradict each other. */
export function parseTakeover({
  level: at,
  keys,
  heartbeatTimeout: lapse,
  fallbackDelay: fallback,
  namespaceSelector,
}: TakeoverOptions): Takeover {
  const wrong = keys?.find((key) => !KEY.test(key));
  if (wrong !== undefined)
    throw new UsageError(
      `--keys: "${wrong}" is not a taint key. Specify keys like node.kubernetes.io/not-ready.`,
    );
  if (at === 'node') {
    refuse('--fallback-delay', fallback, 'pod');
    refuse('--namespace-selector', namespaceSelector, 'pod');
    const strange = keys?.find((key) => !NODE_CONTROLLER_KEYS.includes(key));
    if (strange !== undefined) {
      throw new UsageError(
        `--keys: "${strange}" cannot be taken over at node level. Specify ${NODE_CONTROLLER_KEYS.join(' or ')}, or --level pod.`,
      );
    }
    return {
      at,
      spec: { keys: keys ?? NODE_TAKEOVER.keys, lapseSeconds: lapse ?? NODE_TAKEOVER.lapseSeconds },
    };
  }
  refuse('--heartbeat-timeout', lapse, 'node');
  return {
    at,
    spec: {
      keys: keys ?? POD_TAKEOVER.keys,
      fallbackSeconds: fallback ?? POD_TAKEOVER.fallbackSeconds,
      namespaces: namespaceSelector ?? POD_TAKEOVER.namespaces,
    },
  };
}

function refuse(flag: string, given: unknown, way: Way): void {
  if (given !== undefined)
    throw new UsageError(`${flag} applies only to --level ${way}. Remove it, or specify --level ${way}.`);
}

function seconds(text: string): number {
  const value = Number(text);
  if (/^[1-9]\d*$/.test(text) && value <= MAX_SECONDS) return value;
  throw new InvalidArgumentError(`It is a whole number of seconds from 1 to ${MAX_SECONDS}.`);
}
