import { hash } from 'node:crypto';
import type * as z from 'zod';
import { defined } from '#shared/defined.ts';
import { selects } from '#shared/eviction/gate.ts';
import type { Policy } from '#shared/eviction/policy.ts';
import { projectPod } from '#shared/kubernetes/project.ts';
import { performAct, previewAct } from '#shared/operations/acts/perform.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { type LiveCluster, withCluster } from '#shared/operations/fleet/live-cluster.ts';
import { policyNotes } from '#shared/operations/look/evictor-permissions.ts';
import { editedPolicy } from '#shared/state/edited-policy.ts';
import { OperatorError } from '#shared/state/operator.ts';
import { current } from '#shared/state/operator-controls.ts';
import { loadYaml, orFaults, parseAppliedPolicy } from '#shared/state/policy-document.ts';
import { stopsInForce } from '#shared/state/rules-store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Done, draftSchema, PolicyDraft, Preview, RulesChange } from './api.ts';
import type { FleetView, Seen } from './fleet-view.ts';

/** State that an act depends on has changed since its preview. The message is for the operator. */
export class StaleActError extends Error {
  override readonly name = 'StaleActError';
  override readonly message = 'Something has changed since this was shown: look at it again.';
}

export interface ActDeps {
  readonly fleet: Fleet;
  readonly view: FleetView;
}

/** Rejects with `OperatorError` if the act would have no effect now, and with `StoreError`. */
export async function preview(act: RulesChange, { fleet, view }: ActDeps): Promise<Preview> {
  await known(act, fleet);
  const seen = await view.readAgain();
  const { goes: _goes, effects, ...shown } = await previewAct(act, seen, fleet);
  const notes =
    act.kind === 'apply-policy'
      ? await policyNotes(parseAppliedPolicy(act.text, seen.at), act.cluster, fleet)
      : [];
  return { ...shown, effects: [...effects, ...notes], confirm: confirmation(act, seen) };
}

/** Rejects with `OperatorError`, `StoreError`, or, if pods are counted, `ApiError`. */
export async function draftOf(
  { cluster, text: written, edit, count }: z.output<typeof draftSchema>,
  { fleet, view }: ActDeps,
): Promise<PolicyDraft> {
  await known({ cluster }, fleet);
  const seen = await view.read();
  const text = edit ? editedPolicy(written, edit.setting, edit.value) : written;
  const { value: document } = orFaults(() => loadYaml(text, 0));
  const { value: policy, faults } = orFaults(() => parseAppliedPolicy(text, seen.at));
  const draft = { text, faults, ...defined({ document }) };
  if (!policy) return draft;
  const { effects, settings } = await previewAct({ kind: 'apply-policy', cluster, text }, seen, fleet);
  const selectedIn = ({ objects }: LiveCluster) => selectedTexts(policy, objects, seen.at);
  const selected = count ? await withCluster(fleet, cluster, selectedIn) : [];
  return { ...draft, effects: [...effects, ...selected], ...defined({ settings }) };
}

/** Returns how many pods each entry of a policy selects, if a taint that it names evicts them, one sentence each. */
async function selectedTexts(policy: Policy, objects: LiveCluster['objects'], now: EpochMs) {
  const entries = (['exclude', 'include'] as const).flatMap((name) =>
    policy[name].map((selection, index) => ({ name: `${name}[${index}]`, selection, pods: 0 })),
  );
  let all = 0;
  for await (const json of objects.list('/api/v1/pods')) {
    const pod = projectPod(json);
    const isSelected = ({ selection }: (typeof entries)[number]) =>
      selects(selection, { record: pod, traits: pod }, selection.taints?.[0] ?? '', now);
    for (const entry of entries.filter(isSelected)) entry.pods += 1;
    all += 1;
  }
  return entries.map(({ name, pods }) => `${name} selects ${pods} of ${all} pods.`);
}

/**
 * `confirm`: from the act's preview. Rejects with `StaleActError` if the state that it depends on has changed, and with
 * `OperatorError`, `StoreError`, or `QueueError`.
 */
export async function perform(act: RulesChange, confirm: string, { fleet, view }: ActDeps): Promise<Done> {
  await known(act, fleet);
  const seen = await view.readAgain();
  if (confirmation(act, seen) !== confirm) throw new StaleActError();
  const { message } = await performAct(act, seen, fleet);
  await view.readAgain();
  return { message };
}

async function known({ cluster }: Pick<RulesChange, 'cluster'>, fleet: Fleet): Promise<void> {
  if (cluster === undefined || (await fleet.manages(cluster))) return;
  throw new OperatorError(`Cluster "${cluster}" not found. Reload the page.`);
}

/** Returns a value that changes with the rules in force that affect the act, but not with each pod. */
function confirmation(act: RulesChange, { at, fleetStop, clusters }: Seen): string {
  const scope = clusters
    .filter(({ cluster }) => (act.cluster ?? cluster) === cluster)
    .map(({ cluster, storedRules: rules }) => [
      cluster,
      rules && [current(rules.orders, at), stopsInForce(rules, at), rules.guard.revision],
    ]);
  return hash('sha256', JSON.stringify([act, fleetStop, scope]), 'base64url');
}
