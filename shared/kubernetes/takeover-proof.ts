import { type LiveTaint, taintText } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import type { KubernetesApi, Takeover } from './api.ts';
import { ApiError } from './http/api-error.ts';
import { NEVER_RENEWED } from './takeover.ts';

/** Only written by dry run, and never created, so a permission for this name applies to no node. */
export const PROOF_NODE = 'taintward-takeover-proof';

/** API servers apply a new policy, or a new value of its parameter, after a short delay. */
export const TRY_MS = 1_000;
export const MAX_TRIES = 5;
/** So many timeouts away, a heartbeat keeps no taint out, even if the policy still uses the previous one. */
export const STALE_LAPSES = 3;
/** A taint that a takeover must not affect. */
const BYSTANDER = { key: 'taintward.dev/takeover-proof', value: 'bystander' };

type ProvingApi = Pick<KubernetesApi, 'tryTaints' | 'withholdTakeover'>;

/**
 * Proves a takeover by dry runs: it must remove its taints, but not if their times are too far from the heartbeat, on
 * either side. No renewal is needed: only the distance counts. Resolves with the fault, in a few words; `undefined`:
 * none. `onlyFresh`: only the run with the heartbeat's time. Rejects with `ApiError` if the takeover itself cannot be
 * written.
 */
export async function disproof(
  api: ProvingApi,
  takeover: Takeover,
  {
    tries = MAX_TRIES,
    onlyFresh = false,
    signal,
  }: { readonly tries?: number; readonly onlyFresh?: boolean; readonly signal?: AbortSignal } = {},
): Promise<string | undefined> {
  if (takeover.heartbeat === undefined)
    await api.withholdTakeover(takeover, 'no relay has renewed the takeover yet');
  for (let tried = 1; ; tried++) {
    const wrong = await wrongWith(api, takeover, onlyFresh);
    if (wrong === undefined || tried >= tries || signal?.aborted) return wrong;
    await pause(TRY_MS, signal);
  }
}

async function wrongWith(
  api: Pick<ProvingApi, 'tryTaints'>,
  { heartbeat = NEVER_RENEWED, lapseMs, keys }: Takeover,
  onlyFresh: boolean,
): Promise<string | undefined> {
  // Kubernetes truncates a taint's time to the second.
  const at = Math.floor(heartbeat / 1000) * 1000;
  const down = (timeAdded: EpochMs) => taintsOf(keys, 'NoExecute', timeAdded);
  const others = [...taintsOf(keys, 'NoSchedule', at), { ...BYSTANDER, effect: 'NoExecute', timeAdded: at }];
  try {
    const fresh = await api.tryTaints([...down(at), ...others]);
    const kept = down(at).find((taint) => has(fresh, taint));
    if (kept)
      return `in a dry run, a node kept ${taintText(kept)}: the takeover's admission policy doesn't work in this cluster`;
    const lost = others.find((taint) => !has(fresh, taint));
    if (lost) return `in a dry run, a node lost ${taintText(lost)}, which the takeover must not remove`;
    for (const away of onlyFresh ? [] : [STALE_LAPSES * lapseMs, -STALE_LAPSES * lapseMs]) {
      const stale = await api.tryTaints(down(at + away));
      const gone = down(at + away).find((taint) => !has(stale, taint));
      if (gone) return `in a dry run, a node lost ${taintText(gone)} although the heartbeat isn't current`;
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const right = error.status === 403 ? ' (taintward takeover apply grants the permission)' : '';
    return `the takeover couldn't be verified${right}: ${error.message}`;
  }
}

const taintsOf = (keys: readonly string[], effect: string, timeAdded: EpochMs): readonly LiveTaint[] =>
  keys.map((key) => ({ key, effect, timeAdded }));

/** Other taints are ignored: clusters add taints to new nodes. */
const has = (taints: readonly LiveTaint[], { key, value = '', effect, timeAdded }: LiveTaint): boolean =>
  taints.some(
    (taint) =>
      taint.key === key &&
      (taint.value ?? '') === value &&
      taint.effect === effect &&
      taint.timeAdded === timeAdded,
  );
