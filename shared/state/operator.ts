import { randomBytes } from 'node:crypto';
import { defined } from '#shared/defined.ts';
import { endOf, longestFirst } from '#shared/eviction/gate.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import {
  DEFAULT_POLICY,
  type FreshRelease,
  type Hold,
  type HoldTarget,
  type Policy,
  type Stop,
  type Trip,
} from '#shared/eviction/policy.ts';
import { scopeText } from '#shared/explain/gate-text.ts';
import { type Backoff, untilSuccessful } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { current, fleetStopEntry, nextOrders, untilText } from './operator-controls.ts';
import { changedSettings } from './policy-change.ts';
import { parseAppliedPolicy } from './policy-document.ts';
import {
  type AuditEntry,
  type Change,
  type ClusterAct,
  type OperatorControls,
  type RulesStore,
  type StoredRules,
  stopsInForce,
} from './rules-store.ts';
import { guardStateOf } from './stored-rules.ts';

/** An operator's request is invalid. The message is one sentence with the reason and the fix. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';
}

/** Maximum of stops and of holds in a cluster: all of them are read with each decision. */
const MAX_STOPS = 20;
const MAX_HOLDS = 100;
const MAX_REASON_CHARACTERS = 500;
/** The text of an audit entry has no more changed settings, and no longer values. The entry has the whole document. */
const MAX_SETTINGS = 10;
const MAX_VALUE_CHARACTERS = 40;
/** In an incident, two operators often make changes at the same time, but rarely more than a few do. */
const ATTEMPTS = 8;
const BACKOFF: Backoff = { firstMs: 20, longestMs: 320 };

export interface ActionOptions {
  readonly reason: string;
  /** Absent: until an operator cancels it. */
  readonly durationMs?: number | undefined;
}

type ControlledRules = Pick<
  RulesStore,
  'read' | 'fleetStop' | 'changeOrders' | 'changeFleetStop' | 'changeGuard' | 'note'
>;

export interface OperatorDeps {
  readonly rulesStore: ControlledRules;
  readonly clock: Clock;
  readonly actor: string;
}

/** The reason in the audit log of a stop without one: an emergency doesn't wait for a reason. */
export const NO_REASON = 'no reason given';

/**
 * The actions of an operator on clusters: based on the current state, written if that is unchanged, and audited.
 * Expired stops and holds go along the way. Methods reject with `OperatorError` for an invalid request, and with
 * `StoreError`.
 */
export class Operator {
  readonly #rulesStore: ControlledRules;
  readonly #clock: Clock;
  readonly actor: string;

  constructor({ rulesStore, clock, actor }: OperatorDeps) {
    this.#rulesStore = rulesStore;
    this.#clock = clock;
    this.actor = actor;
  }

  /** Actions reject as these do, and save nothing. `changed`: a cluster's rules, as the action would change them. */
  rehearsing() {
    const rulesStore = this.#rulesStore;
    let changed = (rules: StoredRules): StoredRules => rules;
    const change = async (next: typeof changed): Promise<Change> => {
      changed = next;
      return 'changed';
    };
    const rehearsed: ControlledRules = {
      read: (cluster, fleet) => rulesStore.read(cluster, fleet),
      fleetStop: () => rulesStore.fleetStop(),
      changeOrders: (_, found, next) => change((rules) => ({ ...rules, orders: nextOrders(found, next) })),
      changeFleetStop: (_, stop) =>
        change(({ fleetStop: _, ...rules }) => ({ ...rules, ...(stop && { fleetStop: stop }) })),
      changeGuard: (_, { revision }, trips) =>
        change((rules) => ({ ...rules, guard: guardStateOf(revision + 1, trips) })),
      note: async () => undefined,
    };
    const operator = new Operator({ rulesStore: rehearsed, clock: this.#clock, actor: this.actor });
    return { operator, changed: (rules: StoredRules) => changed(rules) };
  }

  /** Rejects with `PolicyError`, too, except for a document that is already in force. */
  async applyPolicy(cluster: ClusterName, text: string, reason?: string): Promise<'applied' | 'unchanged'> {
    return this.#order<'applied' | 'unchanged'>(cluster, (orders) => {
      if (orders.policy?.text === text) return { result: 'unchanged' };
      const { next, entry } = policyOrders(orders, text, this.#clock.now());
      return {
        result: 'applied',
        next,
        entry: { ...entry, ...(reason === undefined ? {} : { reason: checkedReason(reason) }) },
      };
    });
  }

  async withdrawPolicy(cluster: ClusterName): Promise<void> {
    await this.#order(cluster, ({ policy, ...orders }) => {
      if (!policy) return { result: undefined };
      const entry = { kind: 'policy', message: 'withdrew the policy', before: policy.text } as const;
      return { result: undefined, next: orders, entry };
    });
  }

  /** Adds a stop beside those in force. It is always possible: beyond the maximum, the shortest other stop is dropped. */
  async stop(cluster: ClusterName, causes: ActionOptions): Promise<Stop> {
    return this.#order(cluster, (orders) => {
      const stop: Stop = { scope: 'cluster', id: newId('s'), ...this.#act(causes) };
      const entry = {
        kind: 'stop',
        message: `stopped evictions${untilText(stop)}`,
        reason: stop.reason,
      } as const;
      const others = longestFirst(orders.stops).slice(0, MAX_STOPS - 1);
      return { result: stop, next: { ...orders, stops: longestFirst([...others, stop]) }, entry };
    });
  }

  /**
   * Ends a stop of a cluster: the one with that ID, or the only one. If it has none, resumes it from the stop of all
   * clusters; the others stay stopped. Resolves with a stop that stays in force, if any.
   */
  async resume(cluster: ClusterName, reason: string, id?: string): Promise<Stop | undefined> {
    return this.#order(cluster, (orders, storedRules) => {
      const fleetStop = stopsInForce(storedRules, this.#clock.now()).find(({ scope }) => scope === 'fleet');
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
      const stops = orders.stops.filter((each) => each !== stop);
      const resumedFrom = !stop &&
        fleetStop && { fleetRevision: storedRules.fleetRevision, stoppedAt: fleetStop.at };
      const other = stop && (stops[0] ?? fleetStop);
      const resumed = `resumed evictions${resumedFrom ? ', while other clusters stay stopped' : ''}`;
      return {
        result: other,
        next: { ...orders, stops, ...(resumedFrom && { resumedFrom }) },
        entry: {
          kind: 'resume',
          message: other ? `ended stop ${stop?.id}, while another one stays in force` : resumed,
          reason: checkedReason(reason),
        },
      };
    });
  }

  /**
   * Stops all evictions in all clusters, including those that are added later, and those that were resumed alone. A stop
   * of all clusters that ends later remains. Resolves with the one in force.
   */
  async stopAll(causes: ActionOptions): Promise<Stop> {
    return repeatChange(async () => {
      const found = await this.#rulesStore.fleetStop();
      const wanted: Stop = { scope: 'fleet', ...this.#act(causes) };
      const stop = found && endOf(found) > endOf(wanted) ? { ...found, at: wanted.at } : wanted;
      const change = await this.#rulesStore.changeFleetStop(found, stop, fleetStopEntry(wanted));
      return { result: stop, change };
    });
  }

  /** Cancels the stop of all clusters. Stops of single clusters stay in force. */
  async resumeAll(reason: string): Promise<void> {
    await repeatChange(async () => {
      const found = await this.#rulesStore.fleetStop();
      if (!found) throw new OperatorError('No stop of all clusters is in force. Nothing to resume.');
      const what = 'resumed evictions in all clusters';
      const entry = this.#entry({ kind: 'resume', message: what, reason: checkedReason(reason) });
      return { result: undefined, change: await this.#rulesStore.changeFleetStop(found, undefined, entry) };
    });
  }

  async hold(cluster: ClusterName, target: HoldTarget, { reason, durationMs }: ActionOptions): Promise<Hold> {
    return this.#order(cluster, (orders) => {
      if (orders.holds.length >= MAX_HOLDS) {
        throw new OperatorError(
          `Cluster ${cluster} has the maximum of ${MAX_HOLDS} holds. Release some, or exclude pods in its policy.`,
        );
      }
      const id = newId('h');
      const hold: Hold = { id, target, ...this.#act({ reason, durationMs }) };
      const entry = {
        kind: 'hold',
        message: `held ${targetText(target)}${untilText(hold)} (${id})`,
        reason: hold.reason,
      } as const;
      return { result: hold, next: { ...orders, holds: [...orders.holds, hold] }, entry };
    });
  }

  async release(cluster: ClusterName, id: string, reason: string): Promise<Hold> {
    return this.#order(cluster, (orders) => {
      const hold = orders.holds.find((each) => each.id === id);
      if (!hold)
        throw new OperatorError(
          `Hold "${id}" not found in cluster "${cluster}". It expired or was released.`,
        );
      const entry = {
        kind: 'release',
        message: `released ${targetText(hold.target)} (${id})`,
        reason: checkedReason(reason),
      } as const;
      const holds = orders.holds.filter((each) => each !== hold);
      return { result: hold, next: { ...orders, holds }, entry };
    });
  }

  /** Releases one scope (see {@link scopeText}), or the only one that tripped. A relay then counts its nodes. */
  async releaseGuard(cluster: ClusterName, reason: string, scope?: string): Promise<string> {
    return repeatChange(async () => {
      const { guard } = await this.#rulesStore.read(cluster);
      if (guard.trips.length === 0) {
        throw new OperatorError(`The guard of cluster ${cluster} is not tripped. Nothing to release.`);
      }
      const scopes = guard.trips.map(scopeText);
      const [only, ...others] = scope === undefined ? scopes : scopes.filter((each) => each === scope);
      if (only === undefined || others.length > 0) {
        const why = only === undefined ? `has not tripped for ${scope}` : 'tripped for several scopes';
        throw new OperatorError(
          `The guard of cluster ${cluster} ${why}. Specify one of: ${scopes.map((each) => `--scope ${each}`).join(', ')}.`,
        );
      }
      const what = `released the guard: ${only}`;
      const entry = this.#entry({
        cluster,
        kind: 'release-guard',
        message: what,
        reason: checkedReason(reason),
      });
      const trips = guard.trips.map((trip): Trip | FreshRelease =>
        scopeText(trip) === only ? { ...trip, releasedAt: entry.at } : trip,
      );
      const all = [...(guard.released ?? []), ...trips];
      return { result: only, change: await this.#rulesStore.changeGuard(cluster, guard, all, entry) };
    });
  }

  async noteRetry(cluster: ClusterName, evictions: number, reason?: string): Promise<void> {
    const what = `retried failed evictions: ${evictions}`;
    const given = reason === undefined ? {} : { reason: checkedReason(reason) };
    await this.#rulesStore.note(this.#entry({ cluster, kind: 'retry', message: what, ...given }));
  }

  async noteAct(cluster: ClusterName, kind: ClusterAct, message: string): Promise<void> {
    await this.#rulesStore.note(this.#entry({ cluster, kind, message }));
  }

  async #order<Result>(
    cluster: ClusterName,
    decide: (
      orders: OperatorControls,
      storedRules: StoredRules,
    ) => {
      readonly result: Result;
      readonly next?: Omit<OperatorControls, 'revision'>;
      readonly entry?: Omit<AuditEntry, 'actor' | 'at' | 'cluster'>;
    },
  ): Promise<Result> {
    return repeatChange(async () => {
      const storedRules = await this.#rulesStore.read(cluster);
      const { orders: found } = storedRules;
      const { result, next, entry } = decide(current(found, this.#clock.now()), storedRules);
      if (!next || !entry) return { result, change: 'changed' };
      const noted = this.#entry({ cluster, ...entry });
      return { result, change: await this.#rulesStore.changeOrders(cluster, found, next, noted) };
    });
  }

  #act({ reason, durationMs }: ActionOptions) {
    const at = this.#clock.now();
    return {
      actor: this.actor,
      at,
      reason: checkedReason(reason),
      ...(durationMs === undefined ? {} : { until: at + durationMs }),
    };
  }

  #entry(entry: Omit<AuditEntry, 'actor' | 'at'>): AuditEntry {
    return { actor: this.actor, at: this.#clock.now(), ...entry };
  }
}

const newId = (prefix: string): string => `${prefix}${randomBytes(4).toString('hex')}`;

/** Repeats an attempt while others are faster. Rejects with `OperatorError` after too many attempts. */
export async function repeatChange<Result>(
  attempt: () => Promise<{ readonly result: Result; readonly change: Change }>,
): Promise<Result> {
  const exhausted = () => new OperatorError('Update conflict: other changes are in progress. Try again.');
  return untilSuccessful(
    async () => {
      const { result, change } = await attempt();
      return change === 'changed' ? { result } : undefined;
    },
    { attempts: ATTEMPTS, backoff: BACKOFF, exhausted },
  );
}

function checkedReason(reason: string): string {
  if (reason.trim() === '')
    throw new OperatorError('--reason must not be empty. It is recorded in the audit log.');
  if (reason.length <= MAX_REASON_CHARACTERS) return reason;
  throw new OperatorError(`The reason exceeds ${MAX_REASON_CHARACTERS} characters. Shorten it.`);
}

export function targetText(target: HoldTarget): string {
  switch (target.kind) {
    case 'pod':
      return `pod ${target.namespace}/${target.name}`;
    case 'workload':
      return `workload ${target.namespace}/${target.owner.kind}/${target.owner.name}`;
    case 'node':
      return `node ${target.node}`;
    default:
      return target satisfies never;
  }
}

/** Returns the operator controls with a new policy document, and its audit entry. Throws `PolicyError`. */
export function policyOrders(found: OperatorControls, text: string, now: EpochMs) {
  const orders = current(found, now);
  const read = parseAppliedPolicy(text);
  const before = orders.policy?.text;
  const entry = {
    kind: 'policy',
    message: `applied a policy: ${[read.mode, ...changesOf(orders.policy?.read ?? DEFAULT_POLICY, read)].join(', ')}`,
    ...defined({ before }),
    after: text,
  } as const;
  return { next: { ...orders, policy: { text, read, revision: found.revision + 1 } }, entry };
}

function changesOf(before: Policy, after: Policy): readonly string[] {
  const changed = changedSettings(before, after).filter(({ setting }) => setting !== 'mode');
  const texts = changed.slice(0, MAX_SETTINGS).map(({ setting, next }) => {
    if (next === '-') return `no ${setting}`;
    return next.length > MAX_VALUE_CHARACTERS ? setting : `${setting}: ${next}`;
  });
  return changed.length > MAX_SETTINGS ? [...texts, `${changed.length - MAX_SETTINGS} more`] : texts;
}
