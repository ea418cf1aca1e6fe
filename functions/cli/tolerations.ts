import { type Command, InvalidArgumentError, Option } from 'commander';
import { load } from 'js-yaml';
import * as z from 'zod';
import type { ToleratedTaint, TolerationForecast } from '#shared/explain/toleration-preview.ts';
import { type Workload, workloadText } from '#shared/explain/workload.ts';
import {
  askTolerations,
  changeTolerations,
  type TolerationObject,
  type TolerationsAnswer,
  tolerationSchema,
} from '#shared/operations/ask/tolerations.ts';
import { forecastText, tolerationText } from '#shared/operations/ask/words.ts';
import { theCluster, UsageError } from '#shared/operations/fleet/fleet.ts';
import { readFiles } from '#shared/operations/fleet/fleet-documents.ts';
import { withCluster } from '#shared/operations/fleet/live-cluster.ts';
import { taintText } from '#shared/taints/taint.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { firstFault } from '#shared/text/read-as.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type CliDeps, CliError, comparisonOption, mustConfirm, throwFaults } from './command.ts';
import { parseWorkload } from './explain.ts';
import {
  type Column,
  linesText,
  type OutputFormat,
  outputOption,
  printShown,
  type TableLayout,
  withExamples,
} from './output.ts';
import { sectionsText, tableLines } from './sections.ts';
import { addLiveOptions, withLive } from './with-fleet.ts';

interface TolerationsOptions {
  readonly cluster?: string;
  readonly context?: string;
  readonly namespace?: string;
  readonly set?: readonly TolerationObject[];
  readonly file?: string;
  readonly pods: boolean;
  readonly apply: boolean;
  readonly yes: boolean;
  readonly comparisonOperators: boolean;
  readonly output: OutputFormat | 'patch';
}

/** `taintward tolerations`: shows, previews, and changes the tolerations of a workload or pod. */
export function addTolerationsCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('tolerations')
    .summary('Preview or change the tolerations of pods')
    .description(
      "Show the tolerations of a workload's template or of a pod, with those that have no effect, and preview others on today's nodes. Changes nothing without --apply.",
    )
    .argument('<workload>', 'NAMESPACE/KIND/NAME, or NAMESPACE/NAME of a pod')
    .option('-n, --namespace <name>', 'namespace of the workload or pod')
    .option('--cluster <name>', 'cluster name (default: the only one)')
    .addOption(
      new Option(
        '--set <toleration>',
        'toleration of the new list, for example key=gpu,operator=Exists,effect=NoExecute,seconds=300; repeatable',
      ).argParser((text, list: readonly TolerationObject[] = []) => [...list, parseToleration(text)]),
    )
    .addOption(new Option('-f, --file <file>', 'YAML file with the new list').conflicts('set'))
    .option('--pods', 'add the tolerations to the running pods, instead of changing the template', false)
    .option('--apply', 'make the change, with the credentials of --context', false)
    .option('--yes', 'skip the confirmation of --apply', false)
    .addOption(comparisonOption())
    .addOption(
      outputOption('output format; patch: commands of kubectl').choices([
        ...['table', 'wide', 'json', 'yaml'],
        'patch',
      ]),
    );
  addLiveOptions(
    withExamples(
      command,
      'taintward tolerations shop/Deployment/web',
      'taintward tolerations shop/Deployment/web --set key=gpu,operator=Exists,effect=NoExecute,seconds=300 -o patch',
      'taintward tolerations shop/Deployment/web -f tolerations.yaml --context prod --apply',
      'taintward tolerations deployment/web -n shop --pods --set key=gpu,operator=Exists --context prod --apply',
    ),
  ).action((text: string) =>
    withLive<TolerationsOptions>(command, deps, async (fleet, options) => {
      const { namespace, file, pods, apply, comparisonOperators, output } = options;
      const workload = parseTarget(namespace === undefined ? text : `${namespace}/${text}`);
      const tolerations = options.set ?? (file === undefined ? undefined : readTolerations(file));
      mustFit(options, tolerations);
      const cluster = await theCluster(options.cluster, fleet);
      await withCluster(fleet, cluster, async (live) => {
        const question = {
          cluster,
          workload,
          pods,
          matching: { comparisonOperators },
          ...(tolerations ? { tolerations } : {}),
        };
        const plan = await askTolerations(live, fleet, question, deps);
        const { answer } = plan;
        throwFaults(tolerations ? answer.faults : [], deps);
        if (output === 'patch') {
          throwFaults(answer.obstacles, deps);
          deps.print(linesText(answer.commands));
          return;
        }
        printShown({ data: () => answer, text: (layout) => answerText(answer, layout) }, output, deps);
        if (!apply) return;
        throwFaults(answer.obstacles, deps);
        await mustConfirm('Change these tolerations?', options.yes, deps);
        await changeTolerations(live, fleet, plan, deps);
      });
    }),
  );
}

/** Throws `UsageError` if the options contradict each other. */
function mustFit({ apply, context, output, pods }: TolerationsOptions, tolerations: unknown): void {
  if (tolerations === undefined && (apply || pods || output === 'patch'))
    throw new UsageError('--apply, --pods, and -o patch require --set or --file, the tolerations.');
  if (apply && context === undefined) {
    throw new UsageError(
      '--apply requires --context NAME, your own credentials in a kubeconfig: those of the service are never used.',
    );
  }
  if (apply && output !== 'table')
    throw new UsageError('--output applies only without --apply. Remove one of them.');
}

function parseTarget(text: string): Workload {
  const [namespace = '', name, ...more] = text.split('/');
  if (namespace && name && more.length === 0) return { namespace, kind: 'Pod', name };
  const workload = parseWorkload(text);
  return workload.kind.toLowerCase() === 'pod' ? { ...workload, kind: 'Pod' } : workload;
}

const FORM = 'Specify fields as in key=gpu,operator=Exists,effect=NoExecute,seconds=300.';

/** Reads the fields of a toleration. Throws `InvalidArgumentError`. */
function parseToleration(text: string): TolerationObject {
  const fields = text.split(',').map((part): readonly [string, unknown] => {
    const [name = '', value = '', ...more] = part.split('=');
    if (more.length > 0 || !part.includes('=')) throw new InvalidArgumentError(FORM);
    return name === 'seconds'
      ? ['tolerationSeconds', /^-?\d+$/.test(value) ? Number(value) : value]
      : [name, value];
  });
  const { data, error } = tolerationSchema.safeParse(Object.fromEntries(fields));
  if (data && new Set(fields.map(([name]) => name)).size === fields.length) return data;
  const { field, fault } = error ? firstFault(error) : { field: '', fault: 'repeats a field' };
  throw new InvalidArgumentError(`It ${[field, fault].filter(Boolean).join(' ')}. ${FORM}`);
}

/** Reads a list, or a mapping with the list as `tolerations`. Throws `PolicyError` or `CliError`. */
function readTolerations(path: string): readonly TolerationObject[] {
  try {
    const json = load(readFiles(path)[0]?.text ?? '');
    const list = Array.isArray(json)
      ? json
      : z.strictObject({ tolerations: z.unknown() }).parse(json).tolerations;
    return z.array(tolerationSchema).parse(list);
  } catch (error) {
    const { field, fault } =
      error instanceof z.ZodError ? firstFault(error) : { field: '', fault: errorMessage(error) };
    throw new CliError(
      `${path} is no list of tolerations in YAML: ${[field, fault].filter(Boolean).join(' ')}.`,
    );
  }
}

function answerText(answer: TolerationsAnswer, layout: TableLayout): string {
  const { at, next, added, ineffective, taints, pods, effects, obstacles, faults, commands } = answer;
  const table = <Row>(rows: readonly Row[], columns: readonly Column<Row>[]) =>
    tableLines(rows, columns, layout);
  const isChange = effects.length > 0;
  const rows = [...next, ...added].map((toleration, index) => ({ index, toleration }));
  const note = (index: number) =>
    [
      ...(index < next.length ? [] : ['added to pods']),
      ...ineffective.flatMap(({ rule, toleration }) => (toleration === index ? [rule] : [])),
    ].join(', ');
  return sectionsText(
    `${workloadText(answer)} ${isChange ? 'would have' : 'has'} ${next.length} ${next.length === 1 ? 'toleration' : 'tolerations'}, and ${pods.length} running ${pods.length === 1 ? 'pod' : 'pods'}.`,
    [
      {
        heading: 'Tolerations',
        lines: table(rows, [...TOLERATION_COLUMNS, { head: 'NOTE', of: ({ index }) => note(index) }]),
      },
      {
        heading: 'Warnings',
        lines: [...faults, ...ineffective.map(({ message, remediation }) => `${message} ${remediation}`)],
      },
      { heading: "Taints of today's nodes", lines: table(taints, TAINT_COLUMNS) },
      { heading: 'Pods', lines: table(pods, isChange ? podColumns(at) : podColumns(at).slice(0, -1)) },
      { heading: 'After the change', lines: effects },
      { heading: 'Why Taintward does not make the change', lines: isChange ? obstacles : [] },
      { heading: 'How to make the change', lines: commands },
    ],
    layout.paint,
  );
}

type TolerationRow = { readonly index: number; readonly toleration: TolerationObject };

const TOLERATION_COLUMNS: readonly Column<TolerationRow>[] = [
  { head: '', of: ({ index }) => `[${index}]` },
  { head: 'KEY', of: ({ toleration }) => toleration.key ?? '(every key)' },
  { head: 'OPERATOR', of: ({ toleration }) => toleration.operator ?? 'Equal' },
  { head: 'VALUE', of: ({ toleration }) => toleration.value ?? '' },
  { head: 'EFFECT', of: ({ toleration }) => toleration.effect ?? '(every effect)' },
  { head: 'SECONDS', of: ({ toleration }) => String(toleration.tolerationSeconds ?? '') },
];

const TAINT_COLUMNS: readonly Column<ToleratedTaint>[] = [
  { head: 'TAINT', of: ({ taint }) => taintText(taint) },
  { head: 'NODES', of: ({ nodes }) => String(nodes) },
  { head: 'EVICTS', of: ({ evicts }) => (evicts === 'virtual' ? 'by policy' : evicts) },
  { head: 'TOLERATION', of: tolerationText },
  { head: 'NEW PODS', of: ({ schedules }) => (schedules ? 'can be scheduled' : 'not scheduled') },
];

const podColumns = (now: EpochMs): readonly Column<TolerationForecast>[] => [
  { head: 'POD', of: ({ name }) => name },
  { head: 'NODE', of: ({ node }) => node ?? '' },
  { head: 'NOW', of: ({ before }) => forecastText(before, now) },
  {
    head: 'WITH THE CHANGE',
    of: ({ after }) => (after ? forecastText(after, now) : 'scheduled to another node'),
  },
];
