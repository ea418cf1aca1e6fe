import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { isTarget } from '#shared/eviction/gate.ts';
import { type ClusterName, nodeKey } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Policy, type Rules } from '#shared/eviction/policy.ts';
import { storedGates } from '#shared/explain/recorded-forecast.ts';
import { OperatorError, targetText } from '#shared/state/operator.ts';
import { type ChangedSetting, changedSettings } from '#shared/state/policy-change.ts';
import { parsePolicyDocument } from '#shared/state/policy-document.ts';
import { rulesOf, type StoredRules } from '#shared/state/rules-store.ts';
import { capitalized } from '#shared/text/capitalized.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { MATCHING, type PendingLook } from '../look/pending.ts';
import type { Act } from './act.ts';
import { type Affected, type Effect, kept, released, replaced, retried, zonesText } from './effect.ts';

/** The effect that an act would have now. */
export interface Preview {
  /** Absent: all clusters, or none. */
  readonly cluster?: ClusterName | undefined;
  /** The change as a sentence. */
  readonly change: string;
  /** Consequences of the change, one sentence each. */
  readonly effects: readonly string[];
  /** Pods that the act concerns. Absent: the act changes no evictions of known pods. */
  readonly pods?: Affected;
  /** Settings of a policy that differ. */
  readonly settings?: readonly ChangedSetting[];
  /** Kubernetes objects that are created, updated, or deleted. */
  readonly objects?: readonly ChangedObject[];
}

/** A preview of an act on pending evictions. */
export interface EvictionPreview extends Preview {
  readonly pods: Affected;
}

/** A Kubernetes object that an act changes. */
export interface ChangedObject {
  readonly action: 'create' | 'update' | 'delete';
  /** Kind and name. */
  readonly object: string;
}

/** The state from which acts are previewed. */
export interface ActState {
  readonly at: EpochMs;
  readonly pending: readonly PendingLook[];
  readonly clusters: readonly {
    readonly cluster: ClusterName;
    /** Absent: the rules could not be read. */
    readonly storedRules?: StoredRules | undefined;
  }[];
}

/** Returns the effect that an act would have. Throws `OperatorError` if its hold does not exist. */
export function previewOf(act: Act, state: ActState): EvictionPreview {
  const { change, effect, more = [], settings } = shown(act, state);
  const { says, ...pods } = effect;
  return {
    ...(act.cluster === undefined ? {} : { cluster: act.cluster }),
    ...{ change, effects: [...says, ...more], pods },
    ...(settings ? { settings } : {}),
  };
}

interface Shown extends Pick<Preview, 'change' | 'settings'> {
  readonly effect: Effect;
  readonly more?: readonly string[];
}

function shown(act: Act, state: ActState): Shown {
  const now = state.at;
  const pending = state.pending.filter(({ cluster }) => (act.cluster ?? cluster) === cluster);
  const found = state.clusters.find(({ cluster }) => cluster === act.cluster)?.storedRules;
  const over = (ends: (by: EvictionGate) => boolean): Effect =>
    released(pending, ends, { drain: found?.orders.policy?.read.drain, now });
  switch (act.kind) {
    case 'stop': {
      const until = untilText(act.durationMs, 'they are resumed');
      return {
        change: `Evictions are stopped in ${place(act.cluster)}, ${until}.`,
        effect: kept(pending, now),
      };
    }
    case 'resume': {
      const scope = act.cluster === undefined ? 'fleet' : 'cluster';
      return {
        change: `Evictions are resumed in ${place(act.cluster)}.`,
        effect: over((by) => by.kind === 'stopped' && by.scope === scope),
      };
    }
    case 'pause': {
      const until = untilText(act.durationMs, 'the cluster is resumed');
      return {
        change: `Cluster ${act.cluster} is paused, ${until}: due evictions are held.`,
        effect: kept(pending, now),
      };
    }
    case 'unpause':
      return {
        change: `Cluster ${act.cluster} is no longer paused.`,
        effect: over(({ kind }) => kind === 'paused'),
      };
    case 'hold': {
      const meant = pending.filter(({ node, record }) => isTarget(act.target, { node, record }));
      const until = untilText(act.durationMs, 'it is released');
      return {
        change: `${capitalized(targetText(act.target))} in cluster ${act.cluster} isn't evicted, ${until}.`,
        effect: kept(meant, now),
      };
    }
    case 'release': {
      const hold = found?.orders.holds.find(({ id }) => id === act.id);
      if (!hold)
        throw new OperatorError(
          `Hold "${act.id}" not found in cluster "${act.cluster}". It expired or was released.`,
        );
      return {
        change: `Hold ${act.id} is released: ${targetText(hold.target)}.`,
        effect: over((by) => by.kind === 'hold' && by.id === act.id),
      };
    }
    case 'release-guard':
      return {
        change: `The guard of cluster ${act.cluster} is released.`,
        effect: over(({ kind }) => kind === 'guard'),
        more: zonesText(found?.guard.trips ?? []),
      };
    case 'retry': {
      const failed = failedOf(act, pending);
      const count = failed.length === 1 ? '1 failed eviction is' : `${failed.length} failed evictions are`;
      return { change: `${count} retried in ${place(act.cluster)}.`, effect: retried(failed) };
    }
    case 'apply-policy':
      return policyShown(act, found, pending, now);
    default:
      return act satisfies never;
  }
}

function policyShown(
  { cluster, text }: Extract<Act, { readonly kind: 'apply-policy' }>,
  found: StoredRules | undefined,
  pending: readonly PendingLook[],
  now: EpochMs,
): Shown {
  const policy = parsePolicyDocument(text);
  if (!found) throw new OperatorError(`The rules of cluster "${cluster}" could not be read. Try again.`);
  const { orders } = found;
  if (orders.policy?.text === text) {
    const effect = replaced([], { now });
    return { change: `Cluster ${cluster} already has this policy.`, effect, settings: [] };
  }
  const settings = changedSettings(orders.policy?.read ?? DEFAULT_POLICY, policy);
  const names = settings.map(({ setting }) => setting.split('.')[0] ?? setting);
  const next = {
    ...found,
    orders: { ...orders, policy: { text, read: policy, revision: revisionOf(orders) } },
  };
  const before = gatesUnder(rulesOf(found, MATCHING), pending, now);
  const after = gatesUnder(rulesOf(next, MATCHING), pending.map(judgedAgain(names)), now);
  return {
    change: `The policy is applied to cluster ${cluster}.`,
    effect: replaced(
      pending.map((each) => ({ look: { ...each, gates: after(each) }, before: before(each) })),
      { now, drain: policy.drain },
    ),
    more: uncountedText(policy, names),
    settings,
  };
}

/** With the same revision, gates that only the cluster shows stay as they were found. */
const revisionOf = ({ policy }: StoredRules['orders']): number => policy?.revision ?? 0;

/** Gates that a relay found in the cluster, and the settings that they depend on. */
const FOUND_BY: Readonly<Partial<Record<EvictionGate['kind'], readonly string[]>>> = {
  excluded: ['exclude', 'include'],
  'workload-limit': ['maxEvictionsPerWorkload'],
  'node-alive': ['requireExpiredLease'],
};

/** Returns a function that forgets what was found of a pod under settings that changed. */
const judgedAgain =
  (changed: readonly string[]) =>
  (look: PendingLook): PendingLook => {
    const { held, ...record } = look.record;
    const isOver = held && FOUND_BY[held.by.kind]?.some((name) => changed.includes(name)) === true;
    return isOver ? { ...look, record } : look;
  };

/** Returns the gates of pending evictions under these rules, by what is stored of their nodes. */
function gatesUnder(
  rules: Rules,
  pending: readonly PendingLook[],
  now: EpochMs,
): (look: PendingLook) => readonly EvictionGate[] {
  const known = new Map<string, readonly EvictionGate[]>();
  for (const looks of Map.groupBy(pending, nodeKey).values()) {
    const [first] = looks;
    if (!first) continue;
    const scheduled = new Map(looks.map(({ record }) => [record.uid, record]));
    const gatesOf = storedGates({ ref: first, node: first.state, scheduled }, rules, now);
    for (const { record } of looks) known.set(record.uid, gatesOf(record));
  }
  return ({ record, gates }) => known.get(record.uid) ?? gates;
}

/** Settings that change deadlines, or which pods have one. A relay applies them to the pods of the cluster. */
const SCHEDULING = ['treatAsNoExecute', 'tolerationSecondsOverrides'];

/** Returns the limits of what the preview of a policy counts. */
function uncountedText({ exclude, only }: Policy, changed: readonly string[]): readonly string[] {
  const scheduling = SCHEDULING.filter((name) => changed.includes(name));
  const isByLabels = [...exclude, ...only].some(({ labels }) => labels !== undefined);
  return [
    ...(scheduling.length === 0
      ? []
      : [`Evictions that ${scheduling.join(' and ')} would add, cancel, or move are not counted.`]),
    ...(isByLabels && ['exclude', 'include'].some((name) => changed.includes(name))
      ? [
          'Labels of pods are not known here: pods that exclude or include would keep by labels are counted as evicted.',
        ]
      : []),
  ];
}

/** Returns the failed evictions that a retry is about. */
export const failedOf = <Look extends PendingLook>(
  act: Extract<Act, { readonly kind: 'retry' }>,
  pending: readonly Look[],
): readonly Look[] =>
  pending.filter(
    ({ cluster, node, record }) =>
      record.gaveUpAt !== undefined && (act.cluster ?? cluster) === cluster && (act.node ?? node) === node,
  );

/** Returns the clusters of an act, for people. */
export const place = (cluster: ClusterName | undefined): string =>
  cluster === undefined ? 'all clusters' : `cluster ${cluster}`;

const untilText = (durationMs: number | undefined, canceled: string): string =>
  durationMs === undefined ? `until ${canceled}` : `for ${durationText(durationMs)}`;
