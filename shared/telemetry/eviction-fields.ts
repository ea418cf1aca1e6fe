import type { NodeRef } from '#shared/eviction/identity.ts';
import type { Ending, EvictionRecord } from '#shared/eviction/records.ts';
import { taintText } from '#shared/taints/taint.ts';
import type { LogFields } from './log.ts';

/** What every log line about an eviction tells of it. */
export function evictionFields(ref: NodeRef, eviction: EvictionRecord | Ending): LogFields {
  const { uid, namespace, name: pod, fireAt, reasons } = eviction;
  return { ...ref, namespace, pod, uid, fireAt, because: reasons.map(({ taint }) => taintText(taint)) };
}
