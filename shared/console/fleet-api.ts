import { askNode } from '#shared/operations/ask/explain-node.ts';
import { askPod } from '#shared/operations/ask/explain-pod.ts';
import { parseLabelSelector } from '#shared/operations/ask/label-selector.ts';
import { askWhatIf, type NodeChoice } from '#shared/operations/ask/what-if.ts';
import { type QueueCounts, queuesOf } from '#shared/operations/look/look.ts';
import { parseTaint } from '#shared/taints/taint-argument.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { cached } from '#shared/time/cache.ts';
import { answersOf, type DemoCluster, type Questions } from './answers.ts';
import type { WhatIfQuestion } from './api.ts';
import { ApiServer } from './api-server.ts';
import { watchBuiltIn } from './built-in-watch.ts';
import { FleetView } from './fleet-view.ts';
import { Live } from './live.ts';
import { type TolerationsDeps, tolerationQuestions } from './tolerations.ts';

/** Maximum age of cached data in milliseconds. Reads of a table cost money, and reads of a file don't. */
export const MAX_AGE_MS = { local: 1_000, deployed: 5_000, 'in-cluster': 2_000 };

/** Each count of the messages in a deployment's queues needs a request for each queue. */
export const QUEUES_AGE_MS = { local: 1_000, deployed: 60_000, 'in-cluster': 60_000 };

export interface FleetApiOptions extends TolerationsDeps {
  /** Absent: questions are answered from the fleet. */
  readonly questions?: Questions;
  readonly demo?: DemoCluster | undefined;
  readonly log: Log;
}

/** Makes the console's API of a fleet. */
export function fleetApi({ fleet, own, questions, matching, demo, clock, log }: FleetApiOptions): ApiServer {
  const counted = cached(QUEUES_AGE_MS[fleet.kind], () => queuesOf(fleet), clock);
  let counts: QueueCounts | undefined;
  /** Slow queues don't delay the view: it has the former counts until there are new ones. */
  const queues = async (): Promise<QueueCounts> => {
    const read = counted(undefined).then((found) => {
      counts = found;
      return found;
    });
    return counts ?? read;
  };
  const view = new FleetView({
    fleet,
    queues,
    builtIn: watchBuiltIn(fleet, clock),
    clock,
    maxAgeMs: MAX_AGE_MS[fleet.kind],
  });
  const answering = questions ?? questionsTo({ fleet, own, matching, clock });
  const answers = answersOf({ fleet, view, questions: answering, demo, clock });
  return new ApiServer({ answers, live: new Live({ view, clock }), log });
}

/** Answers the same questions as the command line, with the permissions of this process. */
const questionsTo = ({ fleet, own, matching, clock }: TolerationsDeps): Questions => ({
  explainPod: ({ cluster, namespace, pod: name }) =>
    askPod(fleet, { cluster, namespace, name, matching }, { clock }),
  explainNode: ({ cluster, node }) => askNode(fleet, { cluster, node, matching }, { clock }),
  ...tolerationQuestions({ fleet, own, matching, clock }),
  whatIf: ({ cluster, taint, ...which }) =>
    askWhatIf(
      fleet,
      { cluster, taint: parseTaint(taint), nodes: choiceOf(which), matching },
      { clock, progress: () => undefined },
    ),
});

/** Without names and labels, all nodes are chosen. */
const choiceOf = ({ nodes, selector }: Pick<WhatIfQuestion, 'nodes' | 'selector'>): NodeChoice =>
  nodes === undefined
    ? { labels: { matchExpressions: selector === undefined ? [] : parseLabelSelector(selector) } }
    : { names: nodes.split(',').map((name) => name.trim()) };
