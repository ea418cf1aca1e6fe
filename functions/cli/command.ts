import { InvalidArgumentError, Option } from 'commander';
import type { Connect } from '#shared/access/connect.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { ContextFleet, Fleet } from '#shared/operations/fleet/fleet.ts';
import type { FleetChoice, LiveChoice } from '#shared/operations/fleet/fleet-choice.ts';
import { clusterNameSchema } from '#shared/state/registry.ts';
import type { Clock } from '#shared/time/clock.ts';
import { durationMs } from '#shared/time/duration.ts';

import type { ExitCode } from './exit-codes.ts';
import type { Paint } from './paint.ts';
import type { Progress } from './progress.ts';
import type { Watch } from './watch.ts';

/** What commands need of the world. */
export interface CliDeps {
  /** Throws `FleetError` or `StoreError` where there is none. */
  fleet(choice: FleetChoice): Fleet;
  /** Also a cluster of which nothing is known but what it says itself. Rejects as `fleet` throws. */
  live(choice: LiveChoice): Promise<Fleet | ContextFleet>;
  readonly connect: Connect;
  readonly clock: Clock;
  /** To standard output; the text ends with a line feed. */
  print(text: string): void;
  /** To standard error, likewise. */
  complain(text: string): void;
  readonly paint: Paint;
  /** On standard error, for work that takes its time. */
  readonly progress: Progress;
  readonly watch: Watch;
  /** What the process ends with, unless it fails. */
  exitWith(code: ExitCode): void;
  /** Asks whoever sits at the terminal; absent: nobody does. */
  readonly confirm?: ((question: string) => Promise<boolean>) | undefined;
}

/** The operator asked for something that cannot be done; the message is one sentence that says what to do. */
export class CliError extends Error {
  override readonly name = 'CliError';
}

/** Asks whoever sits at the terminal. Rejects with `CliError` when nobody does. */
export async function confirmed(question: string, confirm: CliDeps['confirm']): Promise<boolean> {
  if (confirm) return confirm(question);
  throw new CliError('Cannot prompt: standard input is not a terminal. To proceed, rerun with --yes.');
}

/** Reads the name of a cluster from an argument. Throws `InvalidArgumentError`. */
export function parseClusterName(text: string): ClusterName {
  const { data, error } = clusterNameSchema.safeParse(text);
  if (data === undefined) throw new InvalidArgumentError(`It ${error.issues[0]?.message}.`);
  return data;
}

/** The reason for what is forbidden or let go: somebody else will want to know it. */
export const whyOption = (): Option =>
  new Option('--reason <text>', 'reason, recorded in the audit log').makeOptionMandatory();

/** For how long it is to be so. */
export const forOption = (): Option =>
  new Option('--for <duration>', 'duration, for example 90s, 15m, 4h, or 4d (default: no expiry)').argParser(
    parseDuration,
  );

/** Milliseconds. Throws `InvalidArgumentError`. */
export function parseDuration(text: string): number {
  const ms = durationMs(text);
  if (ms) return ms;
  throw new InvalidArgumentError('Specify a duration, for example 90s, 15m, 4h, or 4d.');
}
