import { nodeName, podUid } from '#shared/eviction/identity.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import { at, tolerating } from '#test/unit/eviction/builders.ts';

/** Returns a node with the NoExecute taints of these keys. */
export const liveNode = (name = 'n1', ...keys: readonly string[]): LiveNode => ({
  name: nodeName(name),
  resourceVersion: '1',
  taints: keys.map((key) => ({ key, effect: 'NoExecute' })),
});

/** Returns a pod on the node `n1`, bound at second 0, with a name from its UID. */
export const livePod = (uid = 'u1', fields: Partial<LivePod> = {}): LivePod => ({
  uid: podUid(uid),
  namespace: 'default',
  name: `pod-${uid}`,
  resourceVersion: '1',
  node: nodeName('n1'),
  tolerations: [tolerating('a', 60)],
  podSince: at(0),
  terminating: false,
  disrupted: false,
  ...fields,
});
