import type { Command } from 'commander';
import { dueGroupId, encodeRetry } from '#shared/aws/due-message.ts';
import { nodeKey } from '#shared/eviction/identity.ts';
import { retried } from '#shared/operations/acts/effect.ts';
import { clusterOrAll } from '#shared/operations/fleet/fleet.ts';
import { pendingLook } from '#shared/operations/look/pending.ts';
import { type CliDeps, CliError, whyOption } from './command.ts';
import { linesText, withExamples } from './output.ts';
import { withFleet } from './with-fleet.ts';

/** `taintward retry`: retries failed evictions. */
export function addRetryCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('retry')
    .summary('Retry failed evictions')
    .description('Retry failed evictions.')
    .argument('[cluster]', 'cluster name (default: all clusters)')
    .addOption(whyOption().makeOptionMandatory(false));
  withExamples(
    command,
    'taintward retry prod',
    "taintward retry prod --reason 'the webhook is fixed'",
  ).action((name: string | undefined) =>
    withFleet<{ readonly reason?: string }>(command, deps, async (fleet, { reason: why }) => {
      const operator = await fleet.operator();
      const clusters = await clusterOrAll(name, fleet);
      const queue = await fleet.dueQueue();
      for (const cluster of clusters) {
        const pending = await pendingLook(fleet, cluster, deps.clock.now());
        const givenUp = pending.filter(({ record }) => record.gaveUpAt !== undefined);
        const nodes = Map.groupBy(givenUp, nodeKey);
        const messages = [...nodes.values()].flatMap((pods) => {
          const [first] = pods;
          return first
            ? [
                {
                  body: encodeRetry({ ...first, pods: pods.map(({ record }) => record.uid) }),
                  groupId: dueGroupId(cluster),
                },
              ]
            : [];
        });
        const [failure] = await queue.send(messages);
        if (failure) throw new CliError(`Could not enqueue the retry (${failure.reason}). Try again.`);
        if (givenUp.length > 0) await operator.noteRetry(cluster, givenUp.length, why);
        const held = retried(givenUp).says.slice(1);
        deps.print(
          linesText([
            `Retrying ${givenUp.length} failed ${givenUp.length === 1 ? 'eviction' : 'evictions'} in cluster ${cluster}.`,
            ...held,
          ]),
        );
      }
    }),
  );
}
