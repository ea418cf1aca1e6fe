import type { ClusterName } from '#shared/eviction/identity.ts';
import { nextTryOf } from '#shared/eviction/retry.ts';
import { type Operator, targetText } from '#shared/state/operator.ts';
import { type ChangedSetting, changedSettings } from '#shared/state/policy-change.ts';
import { type StoredRules, stopsInForce } from '#shared/state/rules-store.ts';
import { capitalized } from '#shared/text/capitalized.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PendingEviction } from '../look/pending.ts';
import type { Act } from './act.ts';
import { type Affected, effectOf, isOther, retried, zonesText } from './effect.ts';
import { rehearsed } from './rehearsal.ts';

/** The effect that an act would have now. */
export interface Preview {
  /** Absent: all clusters, or none. */
  readonly cluster?: ClusterName | undefined;
  readonly change: string;
  /** Consequences of the change, one sentence each. */
  readonly effects: readonly string[];
  /** Absent: the act changes no evictions of known pods. */
  readonly pods?: Affected;
  readonly settings?: readonly ChangedSetting[];
  readonly objects?: readonly ChangedObject[];
}

export interface EvictionPreview extends Preview {
  readonly pods: Affected;
}

/** A Kubernetes object that an act changes. */
export interface ChangedObject {
  readonly action: 'create' | 'update' | 'delete';
  readonly object: string;
}

export interface ActState {
  readonly at: EpochMs;
  readonly pending: readonly PendingEviction[];
  readonly clusters: readonly {
    readonly cluster: ClusterName;
    /** Absent: the rules could not be read. */
    readonly storedRules?: StoredRules | undefined;
  }[];
}

/** Returns the effect that an act would have. `changed`: the rules that its rehearsal changed. */
export function previewOf(
  act: Act,
  { at: now, ...state }: ActState,
  changed: ReturnType<Operator['rehearsing']>['changed'],
): EvictionPreview {
  const { cluster } = act;
  const isMeant = (each: { readonly cluster: ClusterName }) => (cluster ?? each.cluster) === each.cluster;
  const pending = state.pending.filter(isMeant);
  const scope = cluster === undefined ? {} : { cluster };
  if (act.kind === 'retry') {
    const found = retriedOf(act, pending, now);
    const verb = found.length === 1 ? 'is' : 'are';
    const { sentences: effects, ...pods } = retried(found);
    return { ...scope, change: `${retriedText(found)} ${verb} retried in ${place(cluster)}.`, effects, pods };
  }
  const clusters = state.clusters.filter(isMeant).flatMap(({ cluster: name, storedRules }) => {
    const pods = pending.filter((each) => each.cluster === name);
    return storedRules ? [rehearsed([storedRules, changed(storedRules)], pods, now)] : [];
  });
  const [only] = cluster === undefined ? [] : clusters;
  const uncounted = [...new Set(clusters.flatMap((each) => each.uncounted))];
  const { sentences, ...pods } = effectOf(
    clusters.flatMap(({ judged }) =>
      judged.filter((each) => OF_ALL_PODS.includes(act.kind) || isOther(each)),
    ),
    {
      pace: only && Math.min(only.after.releaseRate, only.after.evictionRate ?? only.after.releaseRate),
      now,
      none: (stay) => (uncounted.length > 0 ? undefined : noneText(act.kind, stay)),
    },
  );
  const rules = cluster === undefined ? [] : state.clusters.filter(isMeant);
  const stopped = rules.some(
    ({ storedRules }) => storedRules && stopsInForce(changed(storedRules), now).length > 0,
  );
  const zones = zonesText(clusters.flatMap(({ ended }) => ended));
  return {
    ...scope,
    change: changeText(act, state.clusters, stopped),
    effects: [...sentences, ...uncounted, ...zones],
    pods,
    ...(act.kind === 'apply-policy' && only ? { settings: changedSettings(only.before, only.after) } : {}),
  };
}

/** Acts that concern all pods, and not only those that get other gates. */
const OF_ALL_PODS: readonly Act['kind'][] = ['stop', 'apply-policy'];

function noneText(kind: Act['kind'], stay: boolean): string {
  if (kind === 'apply-policy') return 'No pending evictions are held or released by it.';
  if (['stop', 'hold'].includes(kind)) return '0 pending evictions are held by it.';
  return stay ? '0 pods are due and will be evicted.' : 'No evictions were held by it.';
}

/** `stopped`: another stop of the cluster stays in force. */
function changeText(
  act: Exclude<Act, { readonly kind: 'retry' }>,
  clusters: ActState['clusters'],
  stopped: boolean,
): string {
  const where = place(act.cluster);
  const { orders } = clusters.find(({ cluster }) => cluster === act.cluster)?.storedRules ?? {};
  switch (act.kind) {
    case 'stop':
      return `Evictions are stopped in ${where}, ${untilText(act.durationMs, 'they are resumed')}.`;
    case 'resume':
      return stopped ? `One of several stops of ${where} is ended.` : `Evictions are resumed in ${where}.`;
    case 'hold': {
      const until = untilText(act.durationMs, 'it is released');
      return `${capitalized(targetText(act.target))} in ${where} isn't evicted, ${until}.`;
    }
    case 'release': {
      const hold = orders?.holds.find(({ id }) => id === act.id);
      return `Hold ${act.id} is released${hold ? `: ${targetText(hold.target)}` : ''}.`;
    }
    case 'release-guard':
      return `The guard of ${where} is released${act.scope === undefined ? '' : ` for ${act.scope}`}.`;
    case 'apply-policy':
      return orders?.policy?.text === act.text
        ? `Cluster ${act.cluster} already has this policy.`
        : `The policy is applied to ${where}.`;
    default:
      return act satisfies never;
  }
}

/** Returns the evictions that a retry is about: those that failed, and those that wait for their next try. */
export const retriedOf = (
  act: Extract<Act, { readonly kind: 'retry' }>,
  pending: readonly PendingEviction[],
  now: EpochMs,
): readonly PendingEviction[] =>
  pending.filter(({ cluster, node, record, state }) => {
    const isWaiting = record.dueAt <= now && (nextTryOf(record, state)?.nextTryAt ?? now) > now;
    const isMeant = (act.cluster ?? cluster) === cluster && (act.node ?? node) === node;
    return isMeant && (record.gaveUpAt !== undefined || (isWaiting && !record.held));
  });

/** Counts these evictions: "2 failed evictions and 1 waiting for the next try". */
export function retriedText(found: readonly PendingEviction[]): string {
  const failed = found.filter(({ record }) => record.gaveUpAt !== undefined).length;
  const waiting = found.length - failed;
  const more = waiting === 0 ? '' : ` and ${waiting} waiting for the next try`;
  return `${failed} failed ${failed === 1 ? 'eviction' : 'evictions'}${more}`;
}

export const place = (cluster: ClusterName | undefined): string =>
  cluster === undefined ? 'all clusters' : `cluster ${cluster}`;

const untilText = (durationMs: number | undefined, canceled: string): string =>
  durationMs === undefined ? `until ${canceled}` : `for ${durationText(durationMs)}`;
