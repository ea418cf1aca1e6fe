import type { Command } from 'commander';
import type { Clusters, ContextFleet, Fleet } from '#shared/operations/fleet/fleet.ts';
import type { FleetChoice, LiveChoice } from '#shared/operations/fleet/fleet-choice.ts';
import type { CliDeps } from './command.ts';

/** Runs `act` on the fleet that a command's options select, with those options. */
export async function withFleet<Options>(
  command: Command,
  deps: CliDeps,
  act: (fleet: Fleet, options: Options) => Promise<void>,
): Promise<void> {
  const options = command.optsWithGlobals<FleetChoice & Options>();
  await closing(deps.fleet(options), (fleet) => act(fleet, options));
}

/** Does the same for commands that ask clusters directly: see {@link addLiveOptions}. */
export async function withLive<Options>(
  command: Command,
  deps: CliDeps,
  act: (fleet: Fleet | ContextFleet, options: Options) => Promise<void>,
): Promise<void> {
  const options = command.optsWithGlobals<LiveChoice & Options>();
  await closing(await deps.live(options), (fleet) => act(fleet, options));
}

/** Adds the options of commands that ask clusters directly. */
export const addLiveOptions = (command: Command): Command =>
  command
    .option(
      '--context <name>',
      'kubeconfig context by which the cluster is read; without other options, nothing but the cluster is read',
    )
    .option(
      '--kubeconfig <file>',
      'kubeconfig file, with --context (default: $KUBECONFIG, then ~/.kube/config)',
    );

async function closing<T extends Clusters>(fleet: T, act: (fleet: T) => Promise<void>): Promise<void> {
  try {
    await act(fleet);
  } finally {
    fleet.close();
  }
}
