import { createHash } from 'node:crypto';
import { type ActedFleet, performAct, previewAct } from '#shared/operations/acts/perform.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { OperatorError } from '#shared/state/operator.ts';
import { current } from '#shared/state/operator-controls.ts';
import { stopsInForce } from '#shared/state/rules-store.ts';
import type { ConsoleAction, Done, Preview } from './api.ts';
import type { FleetView, Seen } from './fleet-view.ts';

/** State that an act depends on has changed since its preview. The message is for the operator. */
export class StaleActError extends Error {
  override readonly name = 'StaleActError';
}

export type ChangedFleet = ActedFleet & Pick<Fleet, 'manages'>;

export interface ActDeps {
  readonly fleet: ChangedFleet;
  readonly view: FleetView;
}

/** Rejects with `OperatorError` if the act would have no effect now, and with `StoreError`. */
export async function preview(act: ConsoleAction, { fleet, view }: ActDeps): Promise<Preview> {
  await known(act, fleet);
  const seen = await view.readAgain();
  const { goes: _goes, ...shown } = await previewAct(act, seen, fleet);
  return { ...shown, confirm: confirmation(act, seen) };
}

/**
 * `confirm`: from the act's preview. Rejects with `StaleActError` if the state that it depends on has changed, and with
 * `OperatorError`, `StoreError`, or `QueueError`.
 */
export async function perform(act: ConsoleAction, confirm: string, { fleet, view }: ActDeps): Promise<Done> {
  await known(act, fleet);
  const seen = await view.readAgain();
  if (confirmation(act, seen) !== confirm) {
    throw new StaleActError('Something has changed since this was shown: look at it again.');
  }
  const { message } = await performAct(act, seen, fleet);
  await view.readAgain();
  return { message };
}

async function known({ cluster }: ConsoleAction, fleet: ChangedFleet): Promise<void> {
  if (cluster === undefined || (await fleet.manages(cluster))) return;
  throw new OperatorError(`Cluster "${cluster}" not found. Reload the page.`);
}

/** Returns a value that changes with the rules in force that affect the act, but not with each pod. */
function confirmation(act: ConsoleAction, { at, fleetStop, clusters }: Seen): string {
  const scope = clusters
    .filter(({ cluster }) => (act.cluster ?? cluster) === cluster)
    .map(({ cluster, storedRules: rules }) => [
      cluster,
      rules && [current(rules.orders, at), stopsInForce(rules, at), rules.guard.revision],
    ]);
  return createHash('sha256')
    .update(JSON.stringify([act, fleetStop, scope]))
    .digest('base64url');
}
