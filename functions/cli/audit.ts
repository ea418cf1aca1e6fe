import { type Command, Option } from 'commander';
import { clusterNamed } from '#functions/operator/fleet.ts';
import type { FleetChoice } from '#functions/operator/fleet-choice.ts';
import { HISTORY_DAYS } from '#shared/store/stored.ts';
import { type CliDeps, parseDuration } from './command.ts';
import { jsonText, type OutputFormat, outputOption, tableText, timeText } from './output.ts';

interface AuditOptions extends FleetChoice {
  readonly since: number;
  readonly output: OutputFormat;
}

/** `taintward audit`: who changed what governs clusters, when, and why. */
export function addAuditCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('audit')
    .description('shows who applied policies, stopped, held and released, when, and why; the newest first')
    .argument('[cluster]', 'its name (default: all clusters)')
    .addOption(
      new Option('--since <duration>', 'how far back, like 12h')
        .argParser(parseDuration)
        .default(HISTORY_DAYS * 86_400_000, `${HISTORY_DAYS}d, for which it is kept`),
    )
    .addOption(outputOption());
  command.action(async (name: string | undefined) => {
    const options = command.optsWithGlobals<AuditOptions>();
    const fleet = deps.fleet(options);
    const cluster = name === undefined ? undefined : await clusterNamed(name, fleet);
    const now = deps.clock.now();
    const entries = await fleet.rulebook.audit({
      from: now - options.since,
      // Clocks differ a little.
      to: now + 60_000,
      ...(cluster === undefined ? {} : { cluster }),
    });
    if (options.output === 'json') {
      deps.print(jsonText(entries.map((entry) => ({ ...entry, at: timeText(entry.at) }))));
    } else if (entries.length === 0) deps.print('Nobody changed anything.\n');
    else
      deps.print(
        tableText([
          ['WHEN', 'WHO', 'CLUSTER', 'WHAT', 'WHY'],
          ...entries.map(({ at, who, cluster: of, what, why }) => [
            timeText(at),
            who,
            of ?? '(all)',
            what,
            why ?? '',
          ]),
        ]),
      );
  });
}
