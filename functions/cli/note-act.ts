import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import type { ClusterAct } from '#shared/state/rules-store.ts';
import { StoreError } from '#shared/state/store.ts';
import type { CliDeps } from './command.ts';
import { linesText } from './output.ts';

/** If the record fails, the act remains done, so the failure is only a warning. */
export async function noteAct(
  fleet: Pick<Fleet, 'operator'>,
  cluster: ClusterName,
  kind: ClusterAct,
  message: string,
  deps: Pick<CliDeps, 'complain'>,
  reason?: string,
): Promise<void> {
  try {
    const { rulesStore, clock, actor } = await fleet.operator();
    await rulesStore.note({ actor, at: clock.now(), cluster, kind, message, ...defined({ reason }) });
  } catch (error) {
    if (!(error instanceof FleetError || error instanceof StoreError)) throw error;
    deps.complain(linesText([`The audit log has no entry that you ${message}. ${error.message}`]));
  }
}
