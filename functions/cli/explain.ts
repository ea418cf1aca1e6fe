import type { Command } from 'commander';
import { nodeName } from '#shared/eviction/identity.ts';
import type { Workload } from '#shared/explain/workload.ts';
import { askNode } from '#shared/operations/ask/explain-node.ts';
import { askPod, type PodQuestion } from '#shared/operations/ask/explain-pod.ts';
import { askWorkload } from '#shared/operations/ask/explain-workload.ts';
import { type ContextFleet, type Fleet, theCluster, UsageError } from '#shared/operations/fleet/fleet.ts';
import type { Blindness } from '#shared/operations/look/blind.ts';
import { type CliDeps, comparisonOption } from './command.ts';
import { nodeStoryText, workloadStoryText } from './node-story.ts';
import { outputOption, type TableLayout, withExamples } from './output.ts';
import { podStoryText } from './pod-story.ts';
import { addLiveOptions, showLive, warnOutdated } from './with-fleet.ts';

interface ExplainOptions {
  readonly cluster?: string;
  readonly namespace?: string;
  readonly comparisonOperators: boolean;
}

type NamedCluster = Pick<PodQuestion, 'cluster' | 'matching'>;

/** `taintward explain`: explains why a pod is evicted or stays, or which pods of a workload or node are evicted. */
export function addExplainCommand(program: Command, deps: CliDeps): void {
  const explain = program.command('explain').summary('Explain why a pod, workload, or node is affected');
  const pod = explain
    .command('pod')
    .summary('Explain why a pod is evicted or stays')
    .description('Explain why a pod was evicted, will be evicted, or stays, when, and how to keep it.')
    .argument('<pod>', 'NAMESPACE/NAME, or NAME with --namespace; deleted pods work too')
    .option('-n, --namespace <name>', 'namespace of the pod');
  answerBy(pod, deps, podStoryText, (fleet, text, named) =>
    askPod(fleet, { ...named, ...parsePod(text) }, deps),
  );
  withExamples(
    pod,
    'taintward explain pod shop/web-0',
    'taintward explain pod/web-0 -n shop    # as kubectl names it',
    'taintward explain pod shop/web-0 --cluster prod -o json',
    'taintward explain pod shop/web-0 --context staging    # asks that cluster alone',
  );
  const workload = explain
    .command('workload')
    .summary('Explain which pods of a workload are evicted')
    .description('Explain which pods of a workload are evicted and when, and what a hold would do.')
    .argument('<workload>', 'NAMESPACE/KIND/NAME, or KIND/NAME with --namespace')
    .option('-n, --namespace <name>', 'namespace of the workload');
  answerBy(workload, deps, workloadStoryText, (fleet, text, named) =>
    askWorkload(fleet, { ...named, ...parseWorkload(text) }, deps),
  );
  withExamples(
    workload,
    'taintward explain workload shop/Deployment/web',
    'taintward explain deployment/web -n shop    # as kubectl names it',
  );
  const node = explain
    .command('node')
    .summary('Explain which pods of a node are evicted')
    .description('Explain which pods of a node are evicted and when, and why others stay.')
    .argument('<node>', 'node name');
  answerBy(node, deps, nodeStoryText, (fleet, name, named) =>
    askNode(fleet, { ...named, node: nodeName(name) }, deps),
  );
  withExamples(node, 'taintward explain node worker-1', 'taintward explain node worker-1 -o wide');
}

/** Adds the options of a question, and prints the answer about what the argument names. */
function answerBy<Story>(
  command: Command,
  deps: CliDeps,
  textOf: (story: Story, layout: TableLayout) => string,
  ask: (fleet: Fleet | ContextFleet, name: string, named: NamedCluster) => Promise<Story & Blindness>,
): void {
  addLiveOptions(command.option('--cluster <name>', 'cluster name (default: the only one)'))
    .addOption(comparisonOption())
    .addOption(outputOption())
    .action((text: string) =>
      showLive<ExplainOptions>(command, deps, async (fleet, options) => {
        const { namespace, comparisonOperators } = options;
        const cluster = await theCluster(options.cluster, fleet);
        const name = namespace === undefined ? text : `${namespace}/${text}`;
        const story = await ask(fleet, name, { cluster, matching: { comparisonOperators } });
        warnOutdated('answer', story.warnings, deps, story.stalled !== undefined);
        return { data: () => story, text: (layout) => textOf(story, layout) };
      }),
    );
}

function parsePod(text: string): Pick<PodQuestion, 'namespace' | 'name'> {
  const [namespace, name, ...more] = text.split('/');
  if (namespace && name && more.length === 0) return { namespace, name };
  throw new UsageError('Specify NAMESPACE/NAME, for example shop/web-0, or NAME with --namespace.');
}

/** Reads `NAMESPACE/KIND/NAME`. Throws `UsageError`. */
export function parseWorkload(text: string): Workload {
  const [namespace, kind, name, ...more] = text.split('/');
  if (namespace && kind && name && more.length === 0) return { namespace, kind: kindOf(kind) ?? kind, name };
  throw new UsageError(
    'Specify NAMESPACE/KIND/NAME, for example shop/Deployment/web, or KIND/NAME with --namespace.',
  );
}

const KINDS = ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'CronJob', 'Job'];
const kindOf = (text: string) => KINDS.find((kind) => kind.toLowerCase() === text.toLowerCase());

/** Returns a command line with `explain pod/NAME` and others, as kubectl writes them, with the words of our commands. */
export const splitNames = (argv: readonly string[]): readonly string[] =>
  argv.flatMap((word, at) => {
    const [kind = '', name] = word.split('/');
    if (argv[at - 1] !== 'explain' || name === undefined) return [word];
    if (kindOf(kind)) return ['workload', word];
    return kind === 'pod' || kind === 'node' ? word.split(/\/(.*)/, 2) : [word];
  });
