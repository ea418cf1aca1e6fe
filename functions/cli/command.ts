import { InvalidArgumentError, Option } from 'commander';
import type { Connect } from '#shared/access/connect.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { ContextFleet, Fleet } from '#shared/operations/fleet/fleet.ts';
import type { FleetChoice, LiveChoice } from '#shared/operations/fleet/fleet-choice.ts';
import { clusterNameSchema } from '#shared/state/registry.ts';
import type { Clock } from '#shared/time/clock.ts';
import { durationMs } from '#shared/time/duration.ts';
import type { ExitCode } from './exit-codes.ts';
import { linesText } from './output.ts';
import type { Paint } from './paint.ts';
import type { Progress } from './progress.ts';
import type { Watch } from './watch.ts';

export interface CliDeps {
  /** Opens a fleet. Rejects with `FleetError` or `StoreError` if there is none. */
  fleet(choice: FleetChoice): Promise<Fleet>;
  /** A fleet, or a kubeconfig's cluster that belongs to none. Rejects as `fleet` does. */
  live(choice: LiveChoice): Promise<Fleet | ContextFleet>;
  readonly connect: Connect;
  readonly clock: Clock;
  /** Writes to standard output. The text ends with a line feed. */
  print(text: string): void;
  /** Writes to standard error. The text ends with a line feed. */
  complain(text: string): void;
  readonly paint: Paint;
  /** Shows the progress of long work on standard error. */
  readonly progress: Progress;
  readonly watch: Watch;
  /** Sets the exit code of a command that succeeds. */
  exitWith(code: ExitCode): void;
  /** Asks the user at the terminal. Absent: standard input is not a terminal. */
  readonly confirm?: ((question: string) => Promise<boolean>) | undefined;
}

/** The operator's request cannot be done. The message is one sentence that says how to proceed. */
export class CliError extends Error {
  override readonly name = 'CliError';
}

export const noSuchCluster = (name: string): CliError =>
  new CliError(`Cluster "${name}" not found. Run "taintward clusters list".`);

/** Prints all faults, and throws `CliError` if there are any. */
export function throwFaults(faults: readonly string[], { complain }: Pick<CliDeps, 'complain'>): void {
  if (faults.length === 0) return;
  complain(linesText(faults));
  throw new CliError(`${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}. Nothing was changed.`);
}

/** Asks the user at the terminal, unless `yes`. Rejects with `CliError` if there is no terminal, or the answer is no. */
export async function mustConfirm(question: string, yes: boolean, { confirm }: CliDeps): Promise<void> {
  if (yes) return;
  if (!confirm)
    throw new CliError('Cannot prompt: standard input is not a terminal. To proceed, rerun with --yes.');
  if (!(await confirm(question))) throw new CliError('Canceled. Nothing was changed.');
}

/** Reads a cluster name from an argument. Throws `InvalidArgumentError`. */
export function parseClusterName(text: string): ClusterName {
  const { data, error } = clusterNameSchema.safeParse(text);
  if (data === undefined) throw new InvalidArgumentError(`It ${error.issues[0]?.message}.`);
  return data;
}

/** Reason for a stop, hold, or release. It is mandatory because others will need it. */
export const whyOption = (): Option =>
  new Option('--reason <text>', 'reason, recorded in the audit log').makeOptionMandatory();

export const forOption = (): Option =>
  new Option('--for <duration>', 'duration, for example 90s, 15m, 4h, or 4d (default: no expiry)').argParser(
    parseDuration,
  );

export const comparisonOption = (): Option =>
  new Option(
    '--comparison-operators',
    'support the toleration operators Lt and Gt (feature gate TaintTolerationComparisonOperators), if the service does',
  ).default(false);

export const kubeconfigOption = (): Option =>
  new Option(
    '--kubeconfig <file>',
    'kubeconfig file, with --context (default: $KUBECONFIG, then ~/.kube/config)',
  );

/** Returns milliseconds. Throws `InvalidArgumentError`. */
export function parseDuration(text: string): number {
  const ms = durationMs(text);
  if (ms) return ms;
  throw new InvalidArgumentError('Specify a duration, for example 90s, 15m, 4h, or 4d.');
}
