import { type Command, Option } from 'commander';
import type { Level } from '#shared/explain/lint.ts';
import {
  type LintFinding,
  type LintReport,
  lintCluster,
  lintManifests,
} from '#shared/operations/ask/lint.ts';
import { theCluster } from '#shared/operations/fleet/fleet.ts';
import { type CliDeps, CliError } from './command.ts';
import { EXIT } from './exit-codes.ts';
import { manifestFiles } from './manifest-files.ts';
import {
  type Column,
  jsonText,
  linesText,
  type OutputFormat,
  shownAs,
  tableOf,
  withExamples,
} from './output.ts';
import type { Paint } from './paint.ts';
import { sarifOf } from './sarif.ts';
import { addLiveOptions, withLive } from './with-fleet.ts';

interface LintOptions {
  readonly file: readonly string[];
  readonly namespace?: string;
  readonly context?: string;
  readonly comparisonOperators: boolean;
  readonly output: OutputFormat | 'sarif';
}

/** `taintward lint`: ineffective tolerations, in a cluster or in manifests. */
export function addLintCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('lint')
    .summary('Find ineffective tolerations')
    .description(
      'Find ineffective tolerations, in a cluster or in manifests (docs/how-to/lint-tolerations.md). Exits with 2 on errors or warnings; notes do not count.',
    )
    .argument('[cluster]', 'cluster name (default: the only one)')
    .addOption(
      new Option(
        '-f, --file <path>',
        'manifest file, directory, or - for standard input, instead of a cluster; repeatable',
      )
        .argParser((path: string, paths: readonly string[]) => [...paths, path])
        .default([], 'none'),
    )
    .option('-n, --namespace <name>', 'namespace (default: all namespaces)')
    .option(
      '--comparison-operators',
      'support the toleration operators Lt and Gt (feature gate TaintTolerationComparisonOperators)',
      false,
    )
    .addOption(
      new Option('-o, --output <format>', 'output format')
        .choices(['table', 'wide', 'json', 'yaml', 'sarif'])
        .default('table'),
    );
  addLiveOptions(
    withExamples(
      command,
      'taintward lint prod -n shop',
      'taintward lint --context kind-kind -o wide',
      'taintward lint -f deploy/ -o sarif > lint.sarif',
      'helm template chart | taintward lint -f -',
    ),
  ).action(async (name: string | undefined) => {
    const options = command.optsWithGlobals<LintOptions>();
    const { file, comparisonOperators, output } = options;
    const matching = { comparisonOperators };
    const show = (report: LintReport) => {
      deps.print(
        output === 'sarif'
          ? jsonText(sarifOf(report))
          : shownAs(output, {
              data: () => report,
              text: (wide) => reportText(report, wide, deps.paint),
            }),
      );
      if (report.findings.some(({ level }) => level !== 'note')) deps.exitWith(EXIT.needsYou);
    };
    if (file.length === 0) {
      await withLive<LintOptions>(command, deps, async (fleet, { namespace }) => {
        const cluster = await theCluster(name, fleet);
        const world = { now: () => deps.clock.now(), progress: deps.progress };
        show(await lintCluster(fleet, { cluster, namespace, matching }, world));
      });
      return;
    }
    if (name !== undefined || options.context !== undefined || options.namespace !== undefined) {
      throw new CliError(
        '--file checks manifests: it cannot be combined with a cluster, --context, or --namespace.',
      );
    }
    show(lintManifests(await manifestFiles(file, process.stdin), matching));
  });
}

function reportText({ objects, findings, unknown }: LintReport, wide: boolean, paint: Paint): string {
  const table =
    findings.length === 0 ? '' : `${tableOf(findings, columnsOf(findings, paint), { wide, paint })}\n`;
  const counts = LEVELS.map((level) => ({
    level,
    count: findings.filter((each) => each.level === level).length,
  }))
    .filter(({ count }) => count > 0)
    .map(({ level, count }) => `${count} ${level}${count === 1 ? '' : 's'}`);
  const found = counts.length === 0 ? 'no findings' : counts.join(', ');
  const left = linesText(unknown.map((each) => (each.endsWith('.') ? each : `${each}.`)));
  return `${table}${left}Checked ${objects} ${objects === 1 ? 'object' : 'objects'}: ${found}.\n`;
}

const LEVELS: readonly Level[] = ['error', 'warning', 'note'];

function columnsOf(findings: readonly LintFinding[], paint: Paint): readonly Column<LintFinding>[] {
  const where: Column<LintFinding> = { head: 'WHERE', of: ({ at }) => (at ? `${at.file}:${at.line}` : '') };
  return [
    ...(findings.some(({ at }) => at) ? [where] : []),
    { head: 'OBJECT', of: ({ object }) => objectText(object) },
    { head: 'LEVEL', of: ({ level }) => paintedLevel(level, paint) },
    { head: 'RULE', of: ({ rule }) => rule },
    { head: 'MESSAGE', of: ({ message }) => message },
    { head: 'REMEDIATION', of: ({ remediation }) => remediation, wide: true },
  ];
}

const objectText = ({ namespace, kind, name }: LintFinding['object']): string =>
  `${namespace === undefined ? '' : `${namespace}/`}${kind}/${name}`;

const paintedLevel = (level: Level, paint: Paint): string =>
  level === 'note' ? level : paint(level === 'error' ? 'red' : 'yellow', level);
