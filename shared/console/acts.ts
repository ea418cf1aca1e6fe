import { createHash } from 'node:crypto';
import { dueGroupId, encodeRetry } from '#shared/aws/due-message.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { isTarget } from '#shared/eviction/gate.ts';
import { type ClusterName, nodeKey } from '#shared/eviction/identity.ts';
import { type Effect, kept, released, retried, zonesText } from '#shared/operations/acts/effect.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { OperatorError, targetText } from '#shared/state/operator.ts';
import { capitalized } from '#shared/text/capitalized.ts';
import { durationText } from '#shared/time/duration.ts';
import type { ConsoleAction, Done, Preview } from './api.ts';
import type { FleetView, PendingSeen, Seen } from './fleet-view.ts';

/** State that an act depends on has changed since its preview. The message is for the operator. */
export class StaleActError extends Error {
  override readonly name = 'StaleActError';
}

/** The parts of a fleet that acts use. */
export type ChangedFleet = Pick<Fleet, 'operator' | 'dueQueue' | 'manages'>;

export interface ActDeps {
  readonly fleet: ChangedFleet;
  readonly view: FleetView;
}

/**
 * Returns the effect that an act would have now. Rejects with `OperatorError` if the act would have none, and
 * with `StoreError`.
 */
export async function previewAct(act: ConsoleAction, { fleet, view }: ActDeps): Promise<Preview> {
  await known(act, fleet);
  return preview(act, await view.lookAnew());
}

/**
 * Does a previewed act. `confirm` is the value from its preview. Rejects with `StaleActError` if the state
 * that it depends on has changed, and with `OperatorError`, `StoreError`, or `QueueError`.
 */
export async function performAct(
  act: ConsoleAction,
  confirm: string,
  { fleet, view }: ActDeps,
): Promise<Done> {
  await known(act, fleet);
  const seen = await view.lookAnew();
  if (preview(act, seen).confirm !== confirm) {
    throw new StaleActError('Something has changed since this was shown: look at it again.');
  }
  const done = { message: await perform(act, seen, fleet) };
  await view.lookAnew();
  return done;
}

async function known({ cluster }: ConsoleAction, fleet: ChangedFleet): Promise<void> {
  if (cluster === undefined || (await fleet.manages(cluster))) return;
  throw new OperatorError(`Cluster "${cluster}" not found. Reload the page.`);
}

function preview(act: ConsoleAction, seen: Seen): Preview {
  const { says, goes = [] } = shown(act, seen);
  return { messages: says, evicted: goes.length, confirm: confirmation(act, seen) };
}

/** Returns a value that changes with the rules that affect the act, but not with each pod. */
function confirmation(act: ConsoleAction, { fleetStop, clusters }: Seen): string {
  const of = clusters
    .filter(({ cluster }) => (act.cluster ?? cluster) === cluster)
    .map(({ cluster, storedRules }) => [cluster, storedRules?.orders.revision, storedRules?.guard.revision]);
  return createHash('sha256')
    .update(JSON.stringify([act, fleetStop, of]))
    .digest('base64url');
}

type Shown = Pick<Effect, 'says'> & Partial<Effect>;

function shown(act: ConsoleAction, seen: Seen): Shown {
  const now = seen.at;
  const pending = seen.pending.filter(({ cluster }) => (act.cluster ?? cluster) === cluster);
  const found = seen.clusters.find(({ cluster }) => cluster === act.cluster)?.storedRules;
  const holds = found?.orders.holds;
  const over = (says: string, ends: (by: EvictionGate) => boolean, ...more: readonly string[]): Shown => {
    const effect = released(pending, ends, { drain: found?.orders.policy?.read.drain, now });
    return { says: [says, ...effect.says, ...more], goes: effect.goes };
  };
  switch (act.kind) {
    case 'stop': {
      const until = untilText(act.durationMs, 'they are resumed');
      return {
        says: [`Evictions are stopped in ${place(act.cluster)}, ${until}.`, ...kept(pending, now)],
      };
    }
    case 'resume': {
      const scope = act.cluster === undefined ? 'fleet' : 'cluster';
      return over(
        `Evictions are resumed in ${place(act.cluster)}.`,
        (by) => by.kind === 'stopped' && by.scope === scope,
      );
    }
    case 'pause': {
      const until = untilText(act.durationMs, 'the cluster is resumed');
      return {
        says: [`Cluster ${act.cluster} is paused, ${until}: due evictions are held.`, ...kept(pending, now)],
      };
    }
    case 'unpause':
      return over(`Cluster ${act.cluster} is no longer paused.`, ({ kind }) => kind === 'paused');
    case 'hold': {
      const meant = pending.filter(({ node, record }) => isTarget(act.target, { node, record }));
      const until = untilText(act.durationMs, 'it is released');
      return {
        says: [
          `${capitalized(targetText(act.target))} in cluster ${act.cluster} isn't evicted, ${until}.`,
          ...kept(meant, now),
        ],
      };
    }
    case 'release': {
      const hold = holds?.find(({ id }) => id === act.id);
      if (!hold)
        throw new OperatorError(
          `Hold "${act.id}" not found in cluster "${act.cluster}". It expired or was released.`,
        );
      return over(
        `Hold ${act.id} is released: ${targetText(hold.target)}.`,
        (by) => by.kind === 'hold' && by.id === act.id,
      );
    }
    case 'release-guard':
      return over(
        `The guard of cluster ${act.cluster} is released.`,
        ({ kind }) => kind === 'guard',
        ...zonesText(found?.guard.trips ?? []),
      );
    case 'retry':
      return retried(givenUp(pending, act));
    default:
      return act satisfies never;
  }
}

async function perform(act: ConsoleAction, { pending }: Seen, fleet: ChangedFleet): Promise<string> {
  const operator = await fleet.operator();
  switch (act.kind) {
    case 'stop': {
      const reasons = { why: act.reason, durationMs: act.durationMs };
      if (act.cluster === undefined) await operator.stopAll(reasons);
      else await operator.stop(act.cluster, reasons);
      return `Evictions are stopped in ${place(act.cluster)}.`;
    }
    case 'resume':
      if (act.cluster === undefined) await operator.resumeAll(act.reason);
      else await operator.resume(act.cluster, act.reason);
      return `Evictions are resumed in ${place(act.cluster)}.`;
    case 'pause':
      await operator.pause(act.cluster, { why: act.reason, durationMs: act.durationMs });
      return `Cluster ${act.cluster} is paused.`;
    case 'unpause':
      await operator.unpause(act.cluster, act.reason);
      return `Cluster ${act.cluster} is no longer paused.`;
    case 'hold': {
      const { id } = await operator.hold(act.cluster, act.target, {
        why: act.reason,
        durationMs: act.durationMs,
      });
      return `Hold ${id}: ${targetText(act.target)} isn't evicted.`;
    }
    case 'release':
      await operator.release(act.cluster, act.id, act.reason);
      return `Hold ${act.id} is released.`;
    case 'release-guard':
      await operator.releaseGuard(act.cluster, act.reason);
      return `The guard of cluster ${act.cluster} is released.`;
    case 'retry': {
      const tried = givenUp(pending, act);
      await retry(tried, fleet);
      for (const [cluster, pods] of Map.groupBy(tried, ({ cluster }) => cluster))
        await operator.noteRetry(cluster, pods.length, act.reason);
      return `Failed evictions that are retried: ${tried.length}.`;
    }
    default:
      return act satisfies never;
  }
}

/** Retries failed evictions, by a message for each of their nodes. */
async function retry(pods: readonly PendingSeen[], fleet: ChangedFleet): Promise<void> {
  const nodes = Map.groupBy(pods, nodeKey);
  const messages = [...nodes.values()].flatMap((each) => {
    const [first] = each;
    if (!first) return [];
    const body = encodeRetry({ ...first, pods: each.map(({ record }) => record.uid) });
    return [{ body, groupId: dueGroupId(first.cluster) }];
  });
  const [failure] = await (await fleet.dueQueue()).send(messages);
  if (failure) throw new OperatorError(`Could not enqueue the retry (${failure.reason}). Try again.`);
}

const givenUp = (pending: readonly PendingSeen[], act: Extract<ConsoleAction, { kind: 'retry' }>) =>
  pending.filter(({ node, record }) => record.gaveUpAt !== undefined && (act.node ?? node) === node);

const place = (cluster: ClusterName | undefined): string =>
  cluster === undefined ? 'all clusters' : `cluster ${cluster}`;

const untilText = (durationMs: number | undefined, taken: string): string =>
  durationMs === undefined ? `until ${taken}` : `for ${durationText(durationMs)}`;
