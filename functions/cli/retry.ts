import type { Command } from 'commander';
import { clusterOrAll } from '#functions/operator/fleet.ts';
import { pendingOf } from '#functions/operator/pending.ts';
import { nodeKey } from '#shared/eviction/identity.ts';
import { encodeRetry } from '#shared/queues/due-message.ts';
import { type CliDeps, CliError } from './command.ts';
import { withExamples } from './output.ts';
import { withFleet } from './with-fleet.ts';

/** `taintward retry`: what was given up is tried again. */
export function addRetryCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('retry')
    .description('has evictions tried again that were given up')
    .argument('[cluster]', 'its name (default: all clusters)');
  withExamples(command, 'taintward retry prod').action((name: string | undefined) =>
    withFleet(command, deps, async (fleet) => {
      const clusters = await clusterOrAll(name, fleet);
      const queue = await fleet.dueQueue();
      for (const cluster of clusters) {
        const pending = await pendingOf(fleet.store, cluster, deps.clock.now());
        const givenUp = pending.filter(({ record }) => record.gaveUpAt !== undefined);
        const nodes = Map.groupBy(givenUp, nodeKey);
        const messages = [...nodes.values()].flatMap((pods) => {
          const [first] = pods;
          return first
            ? [{ body: encodeRetry({ ...first, pods: pods.map(({ record }) => record.uid) }) }]
            : [];
        });
        const [failure] = await queue.send(messages);
        if (failure) throw new CliError(`The queue does not take it (${failure.reason}): try again.`);
        deps.print(`Of cluster ${cluster}, evictions that are tried again: ${givenUp.length}.\n`);
      }
    }),
  );
}
