import { randomBytes } from 'node:crypto';
import { defined } from '#shared/defined.ts';
import { endOf, longestFirst } from '#shared/eviction/gate.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import {
  DEFAULT_POLICY,
  type FreshRelease,
  type Hold,
  type Stop,
  type Trip,
} from '#shared/eviction/policy.ts';
import { scopeText } from '#shared/explain/gate-text.ts';
import { OperatorError } from '#shared/state/operator.ts';
import { current, nextOrders, untilText } from '#shared/state/operator-controls.ts';
import { type ChangedSetting, changedSettings } from '#shared/state/policy-change.ts';
import { parseAppliedPolicy } from '#shared/state/policy-document.ts';
import {
  type AuditEntry,
  type OperatorControls,
  type StoredRules,
  stopsInForce,
} from '#shared/state/rules-store.ts';
import { guardStateOf } from '#shared/state/stored-rules.ts';
import { capitalized } from '#shared/text/capitalized.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { place, type RulesAct, type RulesActKind, targetText } from './act.ts';

/** Maximum of stops and of holds in a cluster: all of them are read with each decision. */
const MAX_STOPS = 20;
const MAX_HOLDS = 100;
const MAX_REASON_CHARACTERS = 500;
const MAX_TARGET_CHARACTERS = 1_000;
/** The message of an audit entry has no more changed settings, and no longer values. The entry has all of them. */
const MAX_SETTINGS = 10;
const MAX_VALUE_CHARACTERS = 40;

/** The part of the rules that an act replaces. */
export type NextRules =
  | { readonly orders: Omit<OperatorControls, 'revision'> }
  | { readonly trips: readonly (Trip | FreshRelease)[] }
  | { readonly fleetStop: Stop | undefined };

/** The effect of an act on the rules for which it was decided. */
export interface Decision {
  /** Absent: the rules are already as the act would make them. */
  readonly change?: { readonly next: NextRules; readonly entry: AuditEntry };
  /** The change, as a sentence: for previews, and when it is done. */
  readonly message: string;
  /** ID of a new hold. */
  readonly hold?: string;
  /** ID of a new stop of a cluster. */
  readonly stop?: string;
}

/** The actor of an act, and its time. */
interface DecisionContext {
  readonly actor: string;
  readonly now: EpochMs;
}

type DraftDecision = Omit<Decision, 'change'> & {
  readonly next?: NextRules;
  readonly audit?: Pick<AuditEntry, 'kind' | 'message' | 'policy'>;
};

/**
 * Decides an act for the rules of its cluster, or for the stop of all clusters. Expired stops and holds go along the
 * way. Throws `OperatorError` if the act is not possible, and `PolicyError` for an invalid document.
 */
export function decide<Kind extends RulesActKind>(
  act: RulesAct<Kind>,
  found: StoredRules,
  context: DecisionContext,
): Decision {
  const { cluster, reason } = act;
  if (reason !== undefined) checkReason(reason);
  const rules = { ...found, orders: current(found.orders, context.now) };
  const { next, audit, ...decision } = DECISIONS[act.kind](act, rules, context);
  if (!next || !audit) return decision;
  const { actor, now: at } = context;
  return {
    ...decision,
    change: { next, entry: { actor, at, ...defined({ cluster }), ...audit, ...defined({ reason }) } },
  };
}

/** Returns the rules of a cluster as an act would change them. */
export function withNext(rules: StoredRules, next: NextRules): StoredRules {
  if ('orders' in next) return { ...rules, orders: nextOrders(rules.orders, next.orders) };
  if ('trips' in next) return { ...rules, guard: guardStateOf(rules.guard.revision + 1, next.trips) };
  const { fleetStop: _, ...others } = rules;
  return { ...others, ...defined(next) };
}

const DECISIONS: {
  readonly [Kind in RulesActKind]: (
    act: RulesAct<Kind>,
    rules: StoredRules,
    context: DecisionContext,
  ) => DraftDecision;
} = {
  /** Always possible. Beyond the maximum, the shortest other stop is dropped. A stop of all clusters that ends later remains. */
  stop: (act, { orders, fleetStop }, context) => {
    const action = actionOf(act, context);
    const audit = (where: string) =>
      ({ kind: 'stop', message: `stopped evictions${where}${untilText(action)}` }) as const;
    const message = ({ until }: Stop) =>
      `Evictions are stopped in ${place(act.cluster)}${untilText({ until })}.`;
    if (act.cluster === undefined) {
      const wanted: Stop = { scope: 'fleet', ...action };
      const stop = fleetStop && endOf(fleetStop) > endOf(wanted) ? { ...fleetStop, at: wanted.at } : wanted;
      return { next: { fleetStop: stop }, audit: audit(' in all clusters'), message: message(stop) };
    }
    const id = newId('s');
    const stop: Stop = { scope: 'cluster', id, ...action };
    const others = longestFirst(orders.stops).slice(0, MAX_STOPS - 1);
    return {
      next: { orders: { ...orders, stops: longestFirst([...others, stop]) } },
      audit: audit(''),
      message: message(stop),
      stop: id,
    };
  },

  /**
   * Ends a stop of a cluster: the one with that ID, or the only one. If it has none, resumes it from the stop of all
   * clusters; the others stay stopped.
   */
  resume: ({ cluster, id }, rules, { now }) => {
    if (cluster === undefined) {
      if (!rules.fleetStop)
        throw new OperatorError('No stop of all clusters is in force. Nothing to resume.');
      const audit = { kind: 'resume', message: 'resumed evictions in all clusters' } as const;
      return { next: { fleetStop: undefined }, audit, message: 'Evictions are resumed in all clusters.' };
    }
    const { orders, fleetRevision } = rules;
    const fleetStop = stopsInForce(rules, now).find(({ scope }) => scope === 'fleet');
    const [stop, ...more] = orders.stops.filter((each) => (id ?? each.id) === each.id);
    if (more.length > 0) {
      const ids = orders.stops.map(
        (each) => `--id ${each.id} (${each.actor}: ${each.reason}${untilText(each)})`,
      );
      throw new OperatorError(`Cluster ${cluster} has several stops. Specify one of: ${ids.join(', ')}.`);
    }
    if (!stop && (id !== undefined || !fleetStop)) {
      throw new OperatorError(
        id === undefined
          ? `Cluster ${cluster} is not stopped. Nothing to resume.`
          : `Stop "${id}" not found in cluster "${cluster}". It expired or was ended: see taintward holds.`,
      );
    }
    if (!stop && fleetStop) {
      const resumedFrom = { fleetRevision, stoppedAt: fleetStop.at };
      return {
        next: { orders: { ...orders, resumedFrom } },
        audit: { kind: 'resume', message: 'resumed evictions, while other clusters stay stopped' },
        message: `Evictions are resumed in ${place(cluster)}.`,
      };
    }
    const stops = orders.stops.filter((each) => each !== stop);
    const next = { orders: { ...orders, stops } };
    const [other] = stopsInForce({ ...rules, ...next }, now);
    return {
      next,
      audit: {
        kind: 'resume',
        message: other ? `ended stop ${stop?.id}, while another one stays in force` : 'resumed evictions',
      },
      message: other
        ? `A stop of cluster ${cluster} is ended. Another one${other.scope === 'fleet' ? ', of all clusters,' : ''} keeps evictions stopped${untilText(other)} (${other.actor}: ${other.reason}).`
        : `Evictions are resumed in ${place(cluster)}.`,
    };
  },

  hold: (act, { orders }, context) => {
    const { cluster, target, others = [] } = act;
    if (orders.holds.length + others.length >= MAX_HOLDS) {
      throw new OperatorError(
        `Cluster ${cluster} has the maximum of ${MAX_HOLDS} holds. Release some, or exclude pods in its policy.`,
      );
    }
    const action = actionOf(act, context);
    const holds = [target, ...others].map((each): Hold => ({ id: newId('h'), target: each, ...action }));
    const texts = holds.map((hold) => targetText(hold.target));
    if (texts.some((text) => text.length > MAX_TARGET_CHARACTERS))
      throw new OperatorError(
        `The target exceeds ${MAX_TARGET_CHARACTERS} characters. Shorten its label selector.`,
      );
    const until = untilText(action);
    const are = others.length > 0 || target.kind === 'labels' ? 'are' : 'is';
    return {
      next: { orders: { ...orders, holds: [...orders.holds, ...holds] } },
      audit: {
        kind: 'hold',
        message: `held ${texts.join(', ')}${until} (${holds.map(({ id }) => id).join(', ')})`,
      },
      message: `${capitalized(texts.join(', '))} in cluster ${cluster} ${are} held${until}.`,
      ...defined({ hold: holds[0]?.id }),
    };
  },

  release: ({ cluster, id, others = [] }, { orders }) => {
    const ids = [id, ...others];
    const released = ids.map((each) => {
      const hold = orders.holds.find((known) => known.id === each);
      if (hold) return hold;
      throw new OperatorError(
        `Hold "${each}" not found in cluster "${cluster}". It expired or was released.`,
      );
    });
    const texts = released.map(({ target }) => targetText(target)).join(', ');
    return {
      next: { orders: { ...orders, holds: orders.holds.filter((each) => !released.includes(each)) } },
      audit: { kind: 'release', message: `released ${texts} (${ids.join(', ')})` },
      message: `${ids.length === 1 ? `Hold ${id} is` : `Holds ${ids.join(', ')} are`} released: ${texts} in cluster ${cluster}.`,
    };
  },

  /** Releases one scope (see {@link scopeText}), or the only one that tripped. A relay then counts its nodes. */
  'release-guard': ({ cluster, scope }, { guard }, { now }) => {
    if (guard.trips.length === 0)
      throw new OperatorError(`The guard of cluster ${cluster} is not tripped. Nothing to release.`);
    const scopes = guard.trips.map(scopeText);
    const [only, ...others] = scope === undefined ? scopes : scopes.filter((each) => each === scope);
    if (only === undefined || others.length > 0) {
      const why = only === undefined ? `has not tripped for ${scope}` : 'tripped for several scopes';
      throw new OperatorError(
        `The guard of cluster ${cluster} ${why}. Specify one of: ${scopes.map((each) => `--scope ${each}`).join(', ')}.`,
      );
    }
    const trips = guard.trips.map((trip): Trip | FreshRelease =>
      scopeText(trip) === only ? { ...trip, releasedAt: now } : trip,
    );
    return {
      next: { trips: [...(guard.released ?? []), ...trips] },
      audit: { kind: 'release-guard', message: `released the guard: ${only}` },
      message: `The guard of cluster ${cluster} is released for ${only}. Held evictions continue at the release rate of its policy.`,
    };
  },

  'apply-policy': ({ cluster, text, owner }, { orders }) => {
    const { policy } = orders;
    if (policy?.text === text && policy.owner === owner)
      return { message: `Cluster ${cluster} already has this policy.` };
    if (owner === undefined) refuseOwned(cluster, policy?.owner);
    const read = policy?.text === text ? policy.read : parseAppliedPolicy(text);
    const revision = orders.revision + 1;
    const settings = changedSettings(policy?.read ?? DEFAULT_POLICY, read);
    return {
      next: { orders: { ...orders, policy: { text, read, revision, ...defined({ owner }) } } },
      audit: {
        kind: 'policy',
        message: `applied ${owner === undefined ? 'a policy' : `the policy of ${owner}`}: ${[read.mode, ...changeTexts(settings)].join(', ')}`,
        policy: { revision, text, settings },
      },
      message: `The policy is applied to cluster ${cluster}.`,
    };
  },

  'withdraw-policy': ({ cluster }, { orders: { policy, ...orders } }) => {
    if (!policy) return { message: `Cluster ${cluster} has no policy.` };
    refuseOwned(cluster, policy.owner);
    const settings = changedSettings(policy.read, DEFAULT_POLICY);
    return {
      next: { orders },
      audit: {
        kind: 'policy',
        message: 'withdrew the policy',
        policy: { revision: orders.revision + 1, settings },
      },
      message: `The policy of cluster ${cluster} is withdrawn.`,
    };
  },

  'release-policy': ({ cluster }, { orders }) => {
    const { policy } = orders;
    if (policy?.owner === undefined) return { message: `Commands own the policy of cluster ${cluster}.` };
    const { owner, ...released } = policy;
    return {
      next: { orders: { ...orders, policy: released } },
      audit: { kind: 'policy', message: `released the policy from ${owner}` },
      message: `The policy of cluster ${cluster} is released from ${owner}.`,
    };
  },
};

function refuseOwned(cluster: ClusterName, owner: string | undefined): void {
  if (owner !== undefined) throw new OperatorError(ownedText(cluster, owner));
}

/** Returns why operators can't change a policy that a file or an object owns. */
export const ownedText = (cluster: ClusterName, owner: string): string =>
  `The policy of cluster ${cluster} belongs to ${owner}: change it there. Stops and holds always work: taintward stop ${cluster}.`;

function changeTexts(settings: readonly ChangedSetting[]): readonly string[] {
  const changed = settings.filter(({ setting }) => setting !== 'mode');
  const texts = changed.slice(0, MAX_SETTINGS).map(({ setting, next }) => {
    if (next === '-') return `no ${setting}`;
    return next.length > MAX_VALUE_CHARACTERS ? setting : `${setting}: ${next}`;
  });
  return changed.length > MAX_SETTINGS ? [...texts, `${changed.length - MAX_SETTINGS} more`] : texts;
}

function actionOf(
  { reason, durationMs }: { readonly reason: string; readonly durationMs?: number | undefined },
  { actor, now }: DecisionContext,
) {
  return { actor, at: now, reason, ...(durationMs === undefined ? {} : { until: now + durationMs }) };
}

const newId = (prefix: string): string => `${prefix}${randomBytes(4).toString('hex')}`;

/** Throws `OperatorError`. */
export function checkReason(reason: string): void {
  if (reason.trim() === '')
    throw new OperatorError('--reason must not be empty. It is recorded in the audit log.');
  if (reason.length > MAX_REASON_CHARACTERS)
    throw new OperatorError(`The reason exceeds ${MAX_REASON_CHARACTERS} characters. Shorten it.`);
}
