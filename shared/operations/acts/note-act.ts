import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { ClusterAct } from '#shared/state/rules-store.ts';
import { StoreError } from '#shared/state/store.ts';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { type Fleet, FleetError } from '../fleet/fleet.ts';

/** If the record fails, the act remains done, so the failure is only a warning, a line that ends with a line feed. */
export async function noteAct(
  fleet: Pick<Fleet, 'operator'>,
  cluster: ClusterName,
  kind: ClusterAct,
  message: string,
  { complain }: { complain(line: string): void },
  reason?: string,
): Promise<void> {
  try {
    const { rulesStore, clock, actor } = await fleet.operator();
    await rulesStore.note({ actor, at: clock.now(), cluster, kind, message, ...defined({ reason }) });
  } catch (error) {
    if (!(error instanceof FleetError || error instanceof StoreError)) throw error;
    complain(`${escapeForDisplay(`The audit log has no entry that you ${message}. ${error.message}`)}\n`);
  }
}
