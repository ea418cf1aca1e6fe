import { dueGroupId, encodeRetry } from '#shared/aws/due-message.ts';
import { defined } from '#shared/defined.ts';
import { type ClusterName, nodeKey } from '#shared/eviction/identity.ts';
import { type Operator, OperatorError, targetText } from '#shared/state/operator.ts';
import { capitalized } from '#shared/text/capitalized.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';
import { type Fleet, storedRulesNow } from '../fleet/fleet.ts';
import { type PendingEviction, pendingEvictions } from '../look/pending.ts';
import type { Act } from './act.ts';
import { type ActState, type EvictionPreview, place, previewOf, retriedOf, retriedText } from './preview.ts';

/** The parts of a fleet that acts use. */
export type ActedFleet = Pick<Fleet, 'operator' | 'dueQueue'>;

export interface Performed {
  /** The completed act, as a sentence. */
  readonly message: string;
  /** ID of a new hold. */
  readonly hold?: string;
  /** ID of a new stop of a cluster. */
  readonly stop?: string;
  /** False: the rules were already as the act would make them. */
  readonly changed: boolean;
}

/** Reads the state from which an act is previewed. Rejects with `StoreError`. */
export async function actState(
  { cluster }: Pick<Act, 'cluster'>,
  fleet: Pick<Fleet, 'clusters' | 'store' | 'rulesStore'>,
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
  const { operator, changed } = (await fleet.operator()).rehearsing();
  const rehearsal: ActedFleet = {
    operator: async () => operator,
    dueQueue: async () => {
      await fleet.dueQueue();
      return { send: async () => [] };
    },
  };
  await performAct(act, state, rehearsal);
  return previewOf(act, state, changed);
}

/**
 * Only a retry needs the pending evictions. Rejects with `OperatorError`, `PolicyError`, `StoreError`, or `QueueError`.
 */
export async function performAct(
  act: Act,
  { pending, at }: Pick<ActState, 'pending' | 'at'>,
  fleet: ActedFleet,
): Promise<Performed> {
  const operator = await fleet.operator();
  switch (act.kind) {
    case 'stop': {
      const reasons = { reason: act.reason, durationMs: act.durationMs };
      const { id, until } =
        act.cluster === undefined
          ? await operator.stopAll(reasons)
          : await operator.stop(act.cluster, reasons);
      return {
        ...done(`Evictions are stopped in ${place(act.cluster)}${untilText(until)}.`),
        ...defined({ stop: id }),
      };
    }
    case 'resume':
      if (act.cluster === undefined) await operator.resumeAll(act.reason);
      else {
        const other = await operator.resume(act.cluster, act.reason, act.id);
        if (other)
          return done(
            `A stop of cluster ${act.cluster} is ended. Another one${other.scope === 'fleet' ? ', of all clusters,' : ''} keeps evictions stopped${untilText(other.until)} (${other.actor}: ${other.reason}).`,
          );
      }
      return done(`Evictions are resumed in ${place(act.cluster)}.`);
    case 'hold': {
      const reasons = { reason: act.reason, durationMs: act.durationMs };
      const { id, until } = await operator.hold(act.cluster, act.target, reasons);
      const target = targetText(act.target);
      const message = `Hold ${id}: ${target} in cluster ${act.cluster} isn't evicted${untilText(until)}.`;
      return { ...done(message), hold: id };
    }
    case 'release': {
      const { target } = await operator.release(act.cluster, act.id, act.reason);
      return done(`Released hold ${act.id}: ${targetText(target)} in cluster ${act.cluster}.`);
    }
    case 'release-guard': {
      const scope = await operator.releaseGuard(act.cluster, act.reason, act.scope);
      return done(
        `Released the guard of cluster ${act.cluster} for ${scope}. Held evictions continue at the release rate of its policy.`,
      );
    }
    case 'retry': {
      const found = retriedOf(act, pending, at);
      await retry(found, act.reason, operator, fleet);
      return done(`Retrying ${retriedText(found)} in ${place(act.cluster)}.`);
    }
    case 'apply-policy': {
      const outcome = await operator.applyPolicy(act.cluster, act.text, act.reason);
      return outcome === 'applied'
        ? done(`Applied the policy to ${place(act.cluster)}. It takes effect within 5 s.`)
        : { message: `${capitalized(place(act.cluster))} already has this policy.`, changed: false };
    }
    default:
      return act satisfies never;
  }
}

const done = (message: string): Performed => ({ message, changed: true });

async function retry(
  failed: readonly PendingEviction[],
  why: string | undefined,
  operator: Operator,
  fleet: ActedFleet,
): Promise<void> {
  const messages = [...Map.groupBy(failed, nodeKey).values()].flatMap((pods) => {
    const [first] = pods;
    if (!first) return [];
    const body = encodeRetry({ ...first, pods: pods.map(({ record }) => record.uid) });
    return [{ body, groupId: dueGroupId(first.cluster) }];
  });
  const [failure] = await (await fleet.dueQueue()).send(messages);
  if (failure) throw new OperatorError(`Could not enqueue the retry (${failure.reason}). Try again.`);
  const clusters = Map.groupBy(failed, ({ cluster }): ClusterName => cluster);
  for (const [cluster, { length }] of clusters) await operator.noteRetry(cluster, length, why);
}

const untilText = (until: EpochMs | undefined): string =>
  until === undefined ? '' : ` until ${timeText(until)}`;
