import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { ChangedSetting } from '#shared/state/policy-change.ts';
import type { ChangedObject, EvictionPreview, Preview } from './preview.ts';

/** A preview with the field names of `-o json`, `-o yaml`, and the console API. */
export interface PreviewOutput {
  /** Absent: all clusters, or none. */
  readonly cluster?: ClusterName;
  readonly change: string;
  /** Consequences of the change, one sentence each. */
  readonly effects: readonly string[];
  /** Absent: the act changes no evictions of known pods. */
  readonly pods?: PodsOutput;
  readonly settings?: readonly ChangedSetting[];
  readonly objects?: readonly ChangedObject[];
}

export interface PodsOutput {
  readonly evictedNow: number;
  readonly evictedWhenDue: number;
  readonly held: number;
}

export function previewOutput(preview: EvictionPreview): PreviewOutput & { readonly pods: PodsOutput };
export function previewOutput(preview: Preview): PreviewOutput;
export function previewOutput({ cluster, change, effects, pods, settings, objects }: Preview): PreviewOutput {
  return {
    ...defined({ cluster }),
    change,
    effects,
    ...(pods ? { pods: { evictedNow: pods.goes.length, evictedWhenDue: pods.later, held: pods.held } } : {}),
    ...defined({ settings, objects }),
  };
}
