import { Argument, type Command } from 'commander';
import { type NodeName, nodeName } from '#shared/eviction/identity.ts';
import { askNode } from '#shared/operations/ask/explain-node.ts';
import { askPod } from '#shared/operations/ask/explain-pod.ts';
import { theCluster, UsageError } from '#shared/operations/fleet/fleet.ts';
import type { CliDeps } from './command.ts';
import { nodeStoryText } from './node-story.ts';
import { type OutputFormat, outputOption, shownAs, withExamples } from './output.ts';
import { podStoryText } from './pod-story.ts';
import { addLiveOptions, warnOutdated, withLive } from './with-fleet.ts';

interface ExplainOptions {
  readonly cluster?: string;
  readonly comparisonOperators: boolean;
  readonly output: OutputFormat;
}

interface NamedPod {
  readonly namespace: string;
  readonly name: string;
}

/** `taintward explain`: explains why a pod is evicted or stays, or which pods of a node are evicted. */
export function addExplainCommand(program: Command, deps: CliDeps): void {
  const explain = program
    .command('explain')
    .summary('Explain why a pod or node is affected')
    .description('Explain why a pod or node is affected.');
  addPodCommand(explain, deps);
  addNodeCommand(explain, deps);
}

function addPodCommand(explain: Command, deps: CliDeps): void {
  const command = explain
    .command('pod')
    .summary('Explain why a pod is evicted or stays')
    .description('Explain why a pod was evicted, will be evicted, or stays, when, and how to keep it.')
    .argument('<pod>', 'NAMESPACE/NAME, or NAME with --namespace; deleted pods work too');
  addQuestionOptions(command.option('-n, --namespace <name>', 'namespace of the pod'));
  withExamples(
    command,
    'taintward explain pod shop/web-0',
    'taintward explain pod/web-0 -n shop    # as kubectl names it',
    'taintward explain pod shop/web-0 --cluster prod -o json',
    'taintward explain pod shop/web-0 --context staging    # asks that cluster alone',
  ).action((text: string) =>
    withLive<ExplainOptions & Partial<NamedPod>>(command, deps, async (fleet, options) => {
      const { output, comparisonOperators } = options;
      const pod = parsePod(options.namespace === undefined ? text : `${options.namespace}/${text}`);
      const cluster = await theCluster(options.cluster, fleet);
      const story = await askPod(fleet, { cluster, ...pod, matching: { comparisonOperators } }, deps);
      warnOutdated('answer', story.warnings, deps, story.stalled !== undefined);
      deps.print(
        shownAs(output, {
          data: () => withDates(story),
          text: (wide) => podStoryText(story, { wide, paint: deps.paint }),
        }),
      );
    }),
  );
}

function addNodeCommand(explain: Command, deps: CliDeps): void {
  const command = explain
    .command('node')
    .summary('Explain which pods of a node are evicted')
    .description('Explain which pods of a node are evicted and when, and why others stay.')
    .addArgument(new Argument('<node>', 'node name').argParser((name) => nodeName(name)));
  addQuestionOptions(command);
  withExamples(command, 'taintward explain node worker-1', 'taintward explain node worker-1 -o wide').action(
    (node: NodeName) =>
      withLive<ExplainOptions>(command, deps, async (fleet, options) => {
        const { output, comparisonOperators } = options;
        const cluster = await theCluster(options.cluster, fleet);
        const story = await askNode(fleet, { cluster, node, matching: { comparisonOperators } }, deps);
        warnOutdated('answer', story.warnings, deps, story.stalled !== undefined);
        deps.print(
          shownAs(output, {
            data: () => withDates(story),
            text: (wide) => nodeStoryText(story, { wide, paint: deps.paint }),
          }),
        );
      }),
  );
}

const addQuestionOptions = (command: Command): Command =>
  addLiveOptions(command.option('--cluster <name>', 'cluster name (default: the only one)'))
    .option(
      '--comparison-operators',
      'support the toleration operators Lt and Gt (feature gate TaintTolerationComparisonOperators)',
      false,
    )
    .addOption(outputOption());

function parsePod(text: string): NamedPod {
  const [namespace, name, ...more] = text.split('/');
  if (namespace && name && more.length === 0) return { namespace, name };
  throw new UsageError('Specify NAMESPACE/NAME, for example shop/web-0, or NAME with --namespace.');
}

/** Returns a command line with `explain pod/NAME` and `explain node/NAME`, as kubectl writes them, in three words. */
export const splitNames = (argv: readonly string[]): readonly string[] =>
  argv.flatMap((word, at) =>
    argv[at - 1] === 'explain' && /^(pod|node)\//.test(word) ? word.split(/\/(.*)/, 2) : [word],
  );

/** Fields that hold a time. */
const MOMENT = /^(?:at|since|until|timeAdded|.*At)$/;

function withDates(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withDates);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([field, part]) => [
      field,
      typeof part === 'number' && MOMENT.test(field) ? new Date(part).toISOString() : withDates(part),
    ]),
  );
}
