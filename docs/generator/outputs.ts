import type { ComparisonOutput } from '#functions/cli/comparison.ts';
import type { LetterOutput } from '#functions/cli/dead-letters.ts';
import type { HistoryOutput } from '#functions/cli/history.ts';
import type { HoldOutput } from '#functions/cli/holds.ts';
import type { GroupOutput, PendingOutput, StuckOutput } from '#functions/cli/pending.ts';
import type { StatusOutput } from '#functions/cli/status.ts';
import type { TakeoverOutput } from '#functions/cli/takeover/status-command.ts';
import type { Api, LiveEvents } from '#shared/console/api.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Preview } from '#shared/operations/acts/preview.ts';
import type { WarnedNodeStory } from '#shared/operations/ask/explain-node.ts';
import type { PodStory } from '#shared/operations/ask/explain-pod.ts';
import type { WorkloadStory } from '#shared/operations/ask/explain-workload.ts';
import type { TolerationsAnswer } from '#shared/operations/ask/tolerations.ts';
import type { WhatIfAnswer } from '#shared/operations/ask/what-if.ts';
import type { Finding } from '#shared/operations/look/finding.ts';
import type { ChangedSetting } from '#shared/state/policy-change.ts';
import type { RegisteredCluster } from '#shared/state/registry.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';

/** What each command prints with `-o json`, by the command and the option that changes the form. */
export interface Outputs {
  audit: readonly AuditEntry[];
  'clusters list': readonly RegisteredCluster[];
  'clusters show': RegisteredCluster;
  'dead-letters list': readonly LetterOutput[];
  doctor: readonly Finding[];
  'explain node': WarnedNodeStory;
  'explain pod': PodStory;
  'explain workload': WorkloadStory;
  history: readonly HistoryOutput[];
  'history --compare': ComparisonOutput;
  holds: readonly HoldOutput[];
  pending: readonly PendingOutput[];
  'pending --by': readonly GroupOutput[];
  'pending --stuck': readonly StuckOutput[];
  'policy diff': readonly (ChangedSetting & { readonly cluster: ClusterName })[];
  status: StatusOutput;
  'takeover status': TakeoverOutput;
  tolerations: TolerationsAnswer;
  'what-if': WhatIfAnswer;
  /** All commands that change something. */
  '--dry-run': readonly Omit<Preview, 'goes'>[];
}

/** What the console's page reads, by request or server-sent event. */
export interface PageInputs {
  console: { readonly [Route in keyof Api]?: Api[Route]['answer'] } & Partial<LiveEvents>;
}
