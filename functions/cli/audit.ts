import { type Command, Option } from 'commander';
import { defined } from '#shared/defined.ts';
import { clusterNamed } from '#shared/operations/fleet/fleet.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import { timeText } from '#shared/time/time-text.ts';
import type { CliDeps } from './command.ts';
import { type Column, listShown, outputOption, withExamples } from './output.ts';
import { type MomentGiven, momentOf, parseMoment } from './time-option.ts';
import { showFleet } from './with-fleet.ts';

/** `taintward audit`: changes of the rules of clusters, with time, actor, and reason. */
export function addAuditCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('audit')
    .summary('Show the audit log')
    .description(
      'Show who changed policies, stops, holds, the guard, registered clusters, and takeovers, when, and why. Newest entries first.',
    )
    .argument('[cluster]', 'cluster name (default: all clusters)')
    .addOption(
      new Option(
        '--since <when>',
        'start time, for example 30m, 2h, 7d, or a date (default: the oldest entry)',
      ).argParser(parseMoment),
    )
    .addOption(outputOption());
  withExamples(command, 'taintward audit', 'taintward audit prod --since 12h -o json').action(
    (name: string | undefined) =>
      showFleet<{ since?: MomentGiven }>(command, deps, async (fleet, { since }) => {
        const cluster = name === undefined ? undefined : await clusterNamed(name, fleet);
        const now = deps.clock.now();
        const entries = await fleet.rulesStore.audit({
          from: since ? momentOf(since, now) : 0,
          // Allows for clock skew between machines.
          to: now + 60_000,
          ...defined({ cluster }),
        });
        return listShown(entries, COLUMNS, 'No audit entries.');
      }),
  );
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { head: 'WHEN', of: ({ at }) => timeText(at) },
  { head: 'ACTOR', of: ({ actor }) => actor },
  { head: 'CLUSTER', of: ({ cluster }) => cluster ?? '(all)' },
  { head: 'KIND', of: ({ kind }) => kind, wide: true },
  { head: 'WHAT', of: ({ message }) => message },
  { head: 'REASON', of: ({ reason }) => reason ?? '' },
];
