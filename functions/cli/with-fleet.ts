import type { Command } from 'commander';
import type { Clusters, ContextFleet, Fleet } from '#shared/operations/fleet/fleet.ts';
import type { FleetChoice, LiveChoice } from '#shared/operations/fleet/fleet-choice.ts';
import { type CliDeps, kubeconfigOption } from './command.ts';
import { EXIT } from './exit-codes.ts';
import { linesText, type OutputFormat, printShown, type Shown } from './output.ts';

/** Runs `act` on the fleet that a command's options select, with those options. */
export async function withFleet<Options>(
  command: Command,
  deps: CliDeps,
  act: (fleet: Fleet, options: Options) => Promise<void>,
): Promise<void> {
  const options = command.optsWithGlobals<FleetChoice & Options>();
  await using(await deps.fleet(options), command, deps, (fleet) => act(fleet, options));
}

/** Does the same for commands that ask clusters directly: see {@link addLiveOptions}. */
export async function withLive<Options>(
  command: Command,
  deps: CliDeps,
  act: (fleet: Fleet | ContextFleet, options: Options) => Promise<void>,
): Promise<void> {
  const options = command.optsWithGlobals<LiveChoice & Options>();
  await using(await deps.live(options), command, deps, (fleet) => act(fleet, options));
}

type Formatted = { readonly output: OutputFormat };

/** Prints the answer of `ask` about the fleet that a command's options select. The command has {@link outputOption}. */
export const showFleet = <Options>(
  command: Command,
  deps: CliDeps,
  ask: (fleet: Fleet, options: Options) => Promise<Shown>,
): Promise<void> =>
  withFleet<Options & Formatted>(command, deps, async (fleet, options) =>
    printShown(await ask(fleet, options), options.output, deps),
  );

/** Does the same for commands that ask clusters directly. */
export const showLive = <Options>(
  command: Command,
  deps: CliDeps,
  ask: (fleet: Fleet | ContextFleet, options: Options) => Promise<Shown>,
): Promise<void> =>
  withLive<Options & Formatted>(command, deps, async (fleet, options) =>
    printShown(await ask(fleet, options), options.output, deps),
  );

/** Adds the options of commands that ask clusters directly. */
export const addLiveOptions = (command: Command): Command =>
  command
    .option(
      '--context <name>',
      'kubeconfig context by which the cluster is read; without other options, nothing but the cluster is read',
    )
    .addOption(kubeconfigOption());

async function using<T extends Clusters>(
  fleet: T,
  command: Command,
  deps: CliDeps,
  act: (fleet: T) => Promise<void>,
): Promise<void> {
  try {
    if (changesEvictions(command)) await printFleet(fleet, deps);
    await act(fleet);
    if (fleet.isAbandoned && !changesEvictions(command)) deps.exitWith(EXIT.cannotKnow);
  } finally {
    fleet.close();
  }
}

/** Warns that an answer may be outdated because of these facts, and exits accordingly if it cannot be relied on. */
export function warnOutdated(
  answer: string,
  why: readonly string[],
  { complain, exitWith }: CliDeps,
  isUnreliable = true,
): void {
  if (why.length === 0) return;
  complain(linesText(why.map((each) => `This ${answer} may be outdated. ${each}`)));
  if (isUnreliable) exitWith(EXIT.cannotKnow);
}

/** Commands that change what is evicted have `--dry-run`. */
export const changesEvictions = (command: Command): boolean => command.getOptionValue('dryRun') !== undefined;

/** Prints the fleet that a command changes, before it does so. */
export async function printFleet(
  { where, region }: Pick<Clusters, 'where' | 'region'>,
  { complain }: Pick<CliDeps, 'complain'>,
): Promise<void> {
  // The command itself reports a missing region.
  const name = await region?.().catch(() => undefined);
  complain(`Fleet: ${where}${name === undefined ? '' : ` in ${name}`}\n`);
}
