import type { Command } from 'commander';
import { clusterOrAll } from '#shared/operations/fleet/fleet.ts';
import { examine } from '#shared/operations/look/doctor.ts';
import type { Finding } from '#shared/operations/look/finding.ts';
import type { CliDeps } from './command.ts';
import { EXIT } from './exit-codes.ts';
import { linesText, outputOption, withExamples } from './output.ts';
import type { Paint } from './paint.ts';
import { addLiveOptions, showLive } from './with-fleet.ts';

/** `taintward doctor`: checks the installation and suggests fixes. */
export function addDoctorCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('doctor')
    .summary('Diagnose the installation')
    .description(
      'Diagnose the installation, and suggest a fix for each problem. Exits with 2 if a check fails.',
    )
    .argument('[cluster]', 'cluster name (default: all clusters)')
    .addOption(outputOption());
  withExamples(
    addLiveOptions(command),
    'taintward doctor',
    'taintward doctor prod -o json',
    'taintward doctor --context kind-kind',
  ).action((name: string | undefined) =>
    showLive(command, deps, async (fleet) => {
      const findings = await examine(fleet, await clusterOrAll(name, fleet), deps);
      if (findings.some(({ verdict }) => verdict === 'bad')) deps.exitWith(EXIT.actionRequired);
      return { data: () => findings, text: ({ paint }) => findingsText(findings, paint) };
    }),
  );
}

const VERDICTS = {
  ok: { text: 'ok  ', style: 'green' },
  warn: { text: 'warn', style: 'yellow' },
  bad: { text: 'BAD ', style: 'red' },
} as const;

function findingsText(findings: readonly Finding[], paint: Paint): string {
  const groups = Map.groupBy(findings, ({ cluster }) => cluster);
  return [...groups]
    .map(([cluster, found]) => {
      const head = paint('bold', cluster === undefined ? 'Fleet' : `Cluster ${cluster}`);
      return linesText([head, ...found.flatMap((finding) => findingLines(finding, paint))]);
    })
    .join('\n');
}

function findingLines({ verdict, check, message, remediation }: Finding, paint: Paint): readonly string[] {
  const { text, style } = VERDICTS[verdict];
  const advice = remediation === undefined ? [] : [`${' '.repeat(21)}${paint('dim', remediation)}`];
  return [`  ${paint(style, text)} ${check.padEnd(13)} ${message}`, ...advice];
}
