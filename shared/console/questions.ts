import { askNode } from '#shared/operations/ask/explain-node.ts';
import { askPod } from '#shared/operations/ask/explain-pod.ts';
import { parseLabelSelector } from '#shared/operations/ask/label-selector.ts';
import { askWhatIf, type NodeChoice } from '#shared/operations/ask/what-if.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import { parseTaint } from '#shared/taints/taint-argument.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { Questions } from './answers.ts';
import type { WhatIfAsked } from './api.ts';

/** Answers the same questions as the command line, with the permissions of this process. */
export const questionsTo = (
  fleet: Fleet,
  { matching, clock }: { readonly matching: MatchOptions; readonly clock: Clock },
): Questions => ({
  explainPod: ({ cluster, namespace, pod: name }) =>
    askPod(fleet, { cluster, namespace, name, matching }, { clock }),
  explainNode: ({ cluster, node }) => askNode(fleet, { cluster, node, matching }, { clock }),
  whatIf: ({ cluster, taint, ...which }) =>
    askWhatIf(
      fleet,
      { cluster, taint: parseTaint(taint), nodes: choiceOf(which), matching },
      { now: () => clock.now(), progress: () => undefined },
    ),
});

/** Returns the chosen nodes. Without names and labels, all nodes are chosen. */
const choiceOf = ({ nodes, selector }: Pick<WhatIfAsked, 'nodes' | 'selector'>): NodeChoice =>
  nodes === undefined
    ? { labels: { matchExpressions: selector === undefined ? [] : parseLabelSelector(selector) } }
    : { names: nodes.split(',').map((name) => name.trim()) };
