import type { ClusterName } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import { stuckAdvice } from '#shared/operations/ask/words.ts';
import { timeText } from '#shared/time/time-text.ts';
import { type Column, listShown, type Shown } from './output.ts';
import type { Paint } from './paint.ts';

/** An evicted pod that is stuck terminating. */
export type StuckPodOf = StuckPod & { readonly cluster: ClusterName };

export const stuckShown = (found: readonly StuckPodOf[], paint: Paint): Shown =>
  listShown(found, COLUMNS, 'No pods are stuck terminating.', paint, () => found.map(stuckOutput));

const stuckOutput = ({ cluster, node, namespace, name, uid, ...state }: StuckPodOf) => ({
  cluster,
  node,
  namespace,
  pod: name,
  uid,
  ...state,
  remediation: stuckAdvice(state),
});
export type StuckOutput = ReturnType<typeof stuckOutput>;

const COLUMNS: readonly Column<StuckPodOf>[] = [
  { head: 'CLUSTER', of: ({ cluster }) => cluster },
  { head: 'NODE', of: ({ node }) => node },
  { head: 'POD', of: ({ namespace, name }) => `${namespace}/${name}` },
  { head: 'UID', of: ({ uid }) => uid, wide: true },
  { head: 'GRACE PERIOD ENDED', of: ({ gracePeriodEndedAt }) => timeText(gracePeriodEndedAt) },
  { head: 'FINALIZERS', of: ({ finalizers }) => finalizers.join(', ') },
  { head: 'REMEDIATION', of: stuckAdvice },
];
