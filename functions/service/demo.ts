import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { styleText } from 'node:util';
import type { DemoCluster } from '#shared/console/answers.ts';
import { LINK_TERMS } from '#shared/console/session.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import type { Clock } from '#shared/time/clock.ts';
import { type SimulatedCluster, startSimulatedCluster } from '#simulator/cluster.ts';
import type { Terminal } from './terminal.ts';

/** A simulated cluster, with a prompt to taint its nodes. */
export interface Demo {
  readonly kubeconfig: string;
  readonly context: string;
  /** The cluster for the console, where users taint nodes by click. */
  readonly byClick: DemoCluster;
  /**
   * Prints instructions and reads commands. Called once the service watches the cluster. `link` makes a new
   * URL of the service's console, if it has one.
   */
  invite(link: (() => string) | undefined): void;
  close(): Promise<void>;
}

const TRY = 'taint node-1 maintenance=now:NoExecute';

/** `quit` is called when the user quits at the prompt. */
export async function startDemo(dir: string, clock: Clock, voice: Terminal, quit: () => void): Promise<Demo> {
  const { log, print, isToTerminal } = voice;
  const cluster = await startSimulatedCluster({ clock, dir, log });
  const prompt = listenForLines(process.stdin, quit);
  return {
    kubeconfig: cluster.kubeconfig,
    context: cluster.context,
    byClick: clickable(cluster),
    invite(link) {
      print(WELCOME(cluster, link && pageText(isToTerminal ? link() : undefined)));
      prompt.onLine((line) => {
        const [command = '', ...words] = line.trim().split(/\s+/);
        if (command === 'quit' || command === 'exit') quit();
        else if (command !== '') answer({ cluster, link }, command, words, print);
      });
    },
    async close() {
      prompt.close();
      await cluster.close();
    },
  };
}

const clickable = (cluster: SimulatedCluster): DemoCluster => ({
  cluster: clusterName(cluster.context),
  nodes() {
    const pods = Map.groupBy(cluster.pods(), ({ node }) => node);
    return cluster.nodes().map(({ name, taints }) => ({
      node: name,
      taints,
      pods: (pods.get(name) ?? []).map(({ namespace, name: pod, uid, status }) => ({
        namespace,
        pod,
        uid,
        status,
      })),
    }));
  },
  taint: (node, taint) => cluster.taint(node, taint),
  untaint: (node, taint) => cluster.untaint(node, taint),
});

/**
 * Prints a link only to a terminal. Elsewhere others may read the output, so the link is printed only on
 * request.
 */
const pageText = (link: string | undefined): string =>
  link === undefined
    ? `To taint nodes in the console, type "console" for a link (${LINK_TERMS}).\n`
    : `To taint nodes in the console, open this link (${LINK_TERMS}; for another, type "console"):\n  ${styleText('bold', link)}\n`;

const WELCOME = (cluster: SimulatedCluster, page = ''): string => `
A simulated cluster of ${cluster.nodes().length} nodes is running, with pods of four workloads:
  web        has only the default tolerations: evicted immediately
  checkout   tolerates the taint "maintenance" for 30s
  db         a StatefulSet, tolerates it for 10s; replacements keep the pod's name
  logs       a DaemonSet, tolerates all taints indefinitely
${page && `\n${page}`}
Type a command and press Enter:
  ${styleText('bold', TRY)}
  ${styleText('bold', 'untaint node-1 maintenance')}
  nodes | pods | help | quit
Or in another terminal: kubectl --kubeconfig ${cluster.kubeconfig} ${TRY.replace('taint', 'taint nodes')}
The cluster also supports kubectl get, describe, scale, apply, explain, and drain; checkout has a disruption budget.
You can stop Taintward at any time with Ctrl-C, Ctrl-D, or kill -9. After a restart, all timers continue.
`;

const HELP = `  taint NODE KEY[=VALUE]:EFFECT   for example: ${TRY}
  untaint NODE KEY[:EFFECT]       remove a taint
  nodes                           list nodes and their taints
  pods [NODE]                     list pods and their nodes
  console                         print a link to the console (${LINK_TERMS})
  quit                            stop the service; the cluster's state is kept`;

interface Prompted {
  readonly cluster: SimulatedCluster;
  readonly link: (() => string) | undefined;
}

function answer(
  prompted: Prompted,
  command: string,
  words: readonly string[],
  print: Terminal['print'],
): void {
  try {
    perform(prompted, command, words, print);
  } catch (error) {
    print(errorMessage(error));
  }
}

function perform(
  { cluster, link }: Prompted,
  command: string,
  words: readonly string[],
  print: Terminal['print'],
): void {
  const [node = '', taint = ''] = words;
  if (taint === '' && (command === 'taint' || command === 'untaint')) {
    print(`Specify a node and a taint. Usage:\n${HELP}`);
    return;
  }
  switch (command) {
    case 'taint':
      cluster.taint(node, taint);
      return;
    case 'untaint':
      cluster.untaint(node, taint);
      return;
    case 'nodes':
      for (const each of cluster.nodes()) print(`  ${each.name}  ${each.taints.join(', ') || 'untainted'}`);
      return;
    case 'pods':
      for (const pod of cluster.pods().filter((each) => node === '' || each.node === node)) {
        print(`  ${pod.node ?? 'pending'}  ${pod.namespace}/${pod.name}  ${pod.status}`);
      }
      return;
    case 'console':
      print(link ? `  ${link()}` : 'The console is disabled. To enable it, restart without --no-console.');
      return;
    default:
      print(command === 'help' ? HELP : `Unknown command "${command}". Available commands:\n${HELP}`);
  }
}

/**
 * Reads the lines that an operator types. `quit` is called when a terminal ends its input (Ctrl-D). The end of any
 * other input is ignored: a service manager provides no input at all.
 */
export function listenForLines(input: Readable & { readonly isTTY?: boolean }, quit: () => void) {
  const lines = createInterface({ input });
  lines.once('close', () => {
    if (input.isTTY) quit();
  });
  return {
    onLine: (handle: (line: string) => void) => void lines.on('line', handle),
    close: () => lines.close(),
  };
}
