import type { DueMessage } from '#shared/aws/due-message.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';

export const CLUSTER = clusterName('prod');
export const REF = { cluster: CLUSTER, node: nodeName('ip-10-0-0-1.ec2.internal') };
export const NOW = Date.UTC(2026, 10, 22, 12);

const uid = (digit: string) => podUid(`${digit.repeat(8)}-0000-4000-8000-000000000000`);
export const [FIRST, SECOND, THIRD, FOURTH] = [uid('1'), uid('2'), uid('3'), uid('4')];

const facts = {
  ref: REF,
  version: { epoch: 1_795_000_000, sequence: 7 },
  observedAt: NOW,
  taints: [
    {
      key: 'maintenance',
      value: 'planned',
      effect: 'NoExecute',
      known: 'added',
      seenAt: NOW - 1_000,
      timeAdded: NOW - 1_000,
    },
    {
      key: 'node.kubernetes.io/unreachable',
      effect: 'NoSchedule',
      virtual: true,
      known: 'preexisting',
      seenAt: NOW,
    },
  ],
  taintsStamp: 'kubectl@2026-11-22T11:59:59Z',
  deletedAt: NOW - 500,
  guardRevision: 3,
} as const;

const pod = {
  uid: FIRST,
  namespace: 'default',
  name: 'web-0',
  owner: { kind: 'StatefulSet', name: 'web' },
  podSince: NOW - 60_000,
  tolerations: [
    {
      key: 'maintenance',
      operator: 'Equal',
      value: 'planned',
      effect: 'NoExecute',
      tolerationSeconds: 9_223_372_036_854_775_807n,
      index: 2,
    },
    { operator: 'Exists' },
  ],
} as const;

const deleted = { ...pod, uid: THIRD, deleted: { at: NOW - 100, by: 'taint-manager' } } as const;

/** A delta of each kind, with all optional fields. */
export const DELTAS: { readonly [Kind in Delta['kind']]: Required<Extract<Delta, { kind: Kind }>> } = {
  node: {
    ...facts,
    kind: 'node',
    pods: [{ ...pod, rank: 4 }],
    others: [SECOND],
    deleted: [deleted],
    wake: true,
    answeredAt: NOW - 2_000,
  },
  pod: { ...facts, kind: 'pod', pod },
  'pod-gone': { ...facts, kind: 'pod-gone', uid: THIRD, deleted },
};

const due = { v: 1, ...REF } as const;
const ofPod = { uid: FIRST, namespace: 'default', name: 'web-0' };

/** A message of each kind on `evictions-due`, with all optional fields. A schedule's input is a message of the first kind. */
export const DUE: { readonly [Kind in DueMessage['kind']]: Extract<DueMessage, { kind: Kind }> } = {
  due: { ...due, kind: 'due', at: NOW + 300_000 },
  canceled: { ...due, kind: 'canceled', version: facts.version, pods: [ofPod] },
  countdowns: {
    ...due,
    kind: 'countdowns',
    pods: [
      {
        ...ofPod,
        dueAt: NOW + 300_000,
        moved: true,
        because: [{ taint: 'maintenance=planned:NoExecute', toleration: 2, seconds: 300 }],
      },
    ],
  },
  retry: { ...due, kind: 'retry', pods: [FIRST, SECOND] },
};
