import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { nextTryOf } from '#shared/eviction/retry.ts';
import { type ChangedSetting, changedSettings } from '#shared/state/policy-change.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PendingEviction } from '../look/pending.ts';
import { type Act, place, type RulesAct, type RulesActKind } from './act.ts';
import { type Decision, withNext } from './decide.ts';
import { type Affected, type Effect, effectOf, isOther, retried, zonesText } from './effect.ts';
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
  /** The pods that the act evicts immediately. */
  readonly goes?: readonly PendingEviction[];
  readonly settings?: readonly ChangedSetting[];
  readonly objects?: readonly ChangedObject[];
}

export type EvictionPreview = Preview & Pick<Effect, 'pods' | 'goes'>;

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

/** Returns the effect of a retry. */
export function retryPreview(
  act: Act<'retry'>,
  { at, pending }: Pick<ActState, 'at' | 'pending'>,
): EvictionPreview {
  const found = retriedOf(act, pending, at);
  const { sentences: effects, ...affected } = retried(found);
  return { ...defined({ cluster: act.cluster }), change: retryText(act, found), effects, ...affected };
}

/** Returns the effect that an act would have by its decision. */
export function previewOf(
  { kind, cluster }: RulesAct,
  { at: now, ...state }: ActState,
  { message, change }: Decision,
): EvictionPreview {
  const isMeant = (each: { readonly cluster: ClusterName }) => (cluster ?? each.cluster) === each.cluster;
  const clusters = state.clusters.filter(isMeant).flatMap(({ cluster: name, storedRules }) => {
    const pods = state.pending.filter((each) => each.cluster === name);
    if (!storedRules) return [];
    const next = change ? withNext(storedRules, change.next) : storedRules;
    return [rehearsed([storedRules, next], pods, now)];
  });
  const [only] = cluster === undefined ? [] : clusters;
  const uncounted = [...new Set(clusters.flatMap((each) => each.uncounted))];
  const { sentences, ...affected } = effectOf(
    clusters.flatMap(({ judged }) => judged.filter((each) => OF_ALL_PODS.includes(kind) || isOther(each))),
    {
      pace: only && Math.min(only.after.releaseRate, only.after.evictionRate ?? only.after.releaseRate),
      now,
      none: (stay) => (uncounted.length > 0 ? undefined : noneText(kind, stay)),
    },
  );
  return {
    ...defined({ cluster }),
    change: message,
    effects: [...sentences, ...uncounted, ...zonesText(clusters.flatMap(({ freedZones }) => freedZones))],
    ...affected,
    ...(kind === 'apply-policy' && only ? { settings: changedSettings(only.before, only.after) } : {}),
  };
}

/** Acts that concern all pods, and not only those that get other gates. */
const OF_ALL_PODS: readonly RulesActKind[] = ['stop', 'apply-policy'];

function noneText(kind: RulesActKind, stay: number): string {
  if (kind === 'apply-policy') return 'No pending evictions are held or released by it.';
  if (kind === 'hold' && stay > 0)
    return stay === 1
      ? '1 pending eviction matches, and is held already.'
      : `${stay} pending evictions match, and are held already.`;
  if (['stop', 'hold'].includes(kind))
    return `No ${stay > 0 ? 'further ' : ''}pending evictions are held by it.`;
  return stay > 0 ? 'No pods will be evicted.' : 'No evictions were held by it.';
}

/** Returns the evictions that a retry is about: those that failed, and those that wait for their next try. */
export const retriedOf = (
  act: Act<'retry'>,
  pending: readonly PendingEviction[],
  now: EpochMs,
): readonly PendingEviction[] =>
  pending.filter(({ cluster, node, record, state }) => {
    const isWaiting = record.dueAt <= now && (nextTryOf(record, state)?.nextTryAt ?? now) > now;
    const isMeant = (act.cluster ?? cluster) === cluster && (act.node ?? node) === node;
    return isMeant && (record.gaveUpAt !== undefined || (isWaiting && !record.held));
  });

/** Counts these evictions: "2 failed evictions and 1 waiting for the next try are retried in cluster prod." */
export function retryText({ cluster }: Act<'retry'>, found: readonly PendingEviction[]): string {
  const failed = found.filter(({ record }) => record.gaveUpAt !== undefined).length;
  const waiting = found.length - failed;
  const more = waiting === 0 ? '' : ` and ${waiting} waiting for the next try`;
  const evictions = `${failed} failed ${failed === 1 ? 'eviction' : 'evictions'}${more}`;
  return `${evictions} ${failed === 1 && waiting === 0 ? 'is' : 'are'} retried in ${place(cluster)}.`;
}
