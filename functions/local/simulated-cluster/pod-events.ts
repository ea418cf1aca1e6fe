import { randomBytes } from 'node:crypto';
import type { PodObject } from './objects/kinds.ts';
import { kubernetesTime } from './objects/kinds.ts';
import type { ObjectStore } from './objects/store.ts';

interface PodNote {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly component: string;
}

/** Records an Event about a pod, as the real components do. */
export function notePod(store: ObjectStore, { metadata }: PodObject, note: PodNote): void {
  const { name, namespace = '', uid } = metadata;
  const at = kubernetesTime(store.now());
  store.create('events', namespace, {
    metadata: { name: `${name}.${randomBytes(8).toString('hex')}` },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid },
    type: note.type,
    reason: note.reason,
    message: note.message,
    source: { component: note.component },
    reportingComponent: note.component,
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
  });
}
