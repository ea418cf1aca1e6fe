import { dueGroupId, encodeRetry } from '#shared/aws/due-message.ts';
import { defined } from '#shared/defined.ts';
import { type ClusterName, nodeKey } from '#shared/eviction/identity.ts';
import { type Operator, OperatorError, repeatChange } from '#shared/state/operator.ts';
import type { Change, StoredRules } from '#shared/state/rules-store.ts';
import { fleetRules, NO_RULES } from '#shared/state/stored-rules.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type Fleet, storedRulesNow } from '../fleet/fleet.ts';
import { type PendingEviction, pendingEvictions } from '../look/pending.ts';
import type { Act, RulesAct } from './act.ts';
import { checkReason, type Decision, decide } from './decide.ts';
import {
  type ActState,
  type EvictionPreview,
  previewOf,
  retriedOf,
  retryPreview,
  retryText,
} from './preview.ts';

/** The parts of a fleet that acts use. */
export type ActedFleet = Pick<Fleet, 'operator' | 'dueQueue'>;

export interface Performed extends Omit<Decision, 'change'> {
  /** False: the rules were already as the act would make them. */
  readonly changed: boolean;
}

/** Reads the state from which an act is previewed. Rejects with `StoreError`. */
export async function actState(
  { cluster }: Pick<Act, 'cluster'>,
  fleet: Pick<Fleet, 'clusters' | 'cluster' | 'store' | 'rulesStore'>,
  at: EpochMs,
): Promise<ActState> {
  const names = cluster === undefined ? await fleet.clusters() : [cluster];
  const rules = await storedRulesNow(names, fleet);
  const pending: PendingEviction[] = [];
  for (const each of names) pending.push(...(await pendingEvictions(fleet, each, at)));
  return {
    at,
    pending,
    clusters: [...rules].map(([name, storedRules]) => ({ cluster: name, storedRules })),
  };
}

/** Changes nothing. Rejects with the errors with which {@link performAct} would reject. */
export async function previewAct(act: Act, state: ActState, fleet: ActedFleet): Promise<EvictionPreview> {
  const operator = await fleet.operator();
  if (act.kind !== 'retry')
    return previewOf(act, state, decided(act, await foundBy(act, operator), operator));
  if (act.reason !== undefined) checkReason(act.reason);
  await fleet.dueQueue();
  return retryPreview(act, state);
}

/**
 * Only a retry needs the pending evictions. Rejects with `OperatorError`, `PolicyError`, `StoreError`, or `QueueError`.
 */
export async function performAct(
  act: Act,
  state: Pick<ActState, 'pending' | 'at'>,
  fleet: ActedFleet,
): Promise<Performed> {
  return act.kind === 'retry' ? retry(act, state, fleet) : perform(act, await fleet.operator());
}

/**
 * Decides an act for the current rules, and saves the rules and its audit entry if those are unchanged. Otherwise decides
 * again. Rejects with `OperatorError`, `PolicyError`, or `StoreError`.
 */
export async function perform(act: RulesAct, operator: Operator): Promise<Performed> {
  return repeatChange(async () => attempt(act, await foundBy(act, operator), operator));
}

/**
 * Performs the act that `choose` returns for a cluster's rules, only if those are then unchanged; otherwise chooses again.
 * `undefined`: none. Rejects as {@link perform} does.
 */
export async function performChosen(
  cluster: ClusterName,
  choose: (found: StoredRules) => Promise<RulesAct | undefined>,
  operator: Operator,
): Promise<Performed | undefined> {
  return repeatChange<Performed | undefined>(async () => {
    const found = await operator.rulesStore.read(cluster);
    const act = await choose(found);
    return act ? attempt(act, found, operator) : { result: undefined, change: 'changed' };
  });
}

async function attempt(act: RulesAct, found: StoredRules, operator: Operator) {
  const { change, ...decision } = decided(act, found, operator);
  const result: Performed = { ...decision, changed: change !== undefined };
  return { result, change: change ? await save(act, found, change, operator) : ('changed' as const) };
}

const decided = (act: RulesAct, found: StoredRules, { actor, clock }: Operator): Decision =>
  decide(act, found, { actor, now: clock.now() });

/** Resolves with the rules of a cluster; for all clusters, with their stop alone. */
const foundBy = async ({ cluster }: RulesAct, { rulesStore }: Operator): Promise<StoredRules> =>
  cluster === undefined
    ? { ...NO_RULES, ...fleetRules(0, await rulesStore.fleetStop()) }
    : rulesStore.read(cluster);

async function save(
  { cluster }: RulesAct,
  found: StoredRules,
  { next, entry }: NonNullable<Decision['change']>,
  { rulesStore }: Operator,
): Promise<Change> {
  if ('fleetStop' in next) return rulesStore.changeFleetStop(found.fleetStop, next.fleetStop, entry);
  if (cluster === undefined) throw new Error('orders and trips are those of a cluster');
  if ('orders' in next) return rulesStore.changeOrders(cluster, found.orders, next.orders, entry);
  return rulesStore.changeGuard(cluster, found.guard, next.trips, entry);
}

async function retry(
  act: Act<'retry'>,
  { pending, at }: Pick<ActState, 'pending' | 'at'>,
  fleet: ActedFleet,
): Promise<Performed> {
  const { reason } = act;
  if (reason !== undefined) checkReason(reason);
  const found = retriedOf(act, pending, at);
  const messages = [...Map.groupBy(found, nodeKey).values()].flatMap((pods) => {
    const [first] = pods;
    if (!first) return [];
    const body = encodeRetry({ ...first, pods: pods.map(({ record }) => record.uid) });
    return [{ body, groupId: dueGroupId(first.cluster) }];
  });
  const { rulesStore, clock, actor } = await fleet.operator();
  const [failure] = await (await fleet.dueQueue()).send(messages);
  if (failure) throw new OperatorError(`Could not enqueue the retry (${failure.reason}). Try again.`);
  for (const [cluster, { length }] of Map.groupBy(found, (each) => each.cluster)) {
    const message = `retried failed evictions: ${length}`;
    await rulesStore.note({
      actor,
      at: clock.now(),
      cluster,
      kind: 'retry',
      message,
      ...defined({ reason }),
    });
  }
  return { message: retryText(act, found), changed: true };
}
