import type { TestCluster } from '#test/cluster/rig/test-cluster.ts';
import type { TappedRequest } from '#test/cluster/rig/wiretap.ts';
import type { NodeMoment } from '#test/cluster/rig/witness.ts';
import type { History, NodeTurn, SentDelete } from './judge.ts';
import { askedAt } from './people.ts';

/** What a look at a node may be older than, when a delete is sent by it: 250 ms as promised, and what this process needs to notice. */
const LOOK_IS_FRESH_MS = 1_000;

/** What the witness saw, straight at the API server, and what the proxy saw of deletes. */
export function historyOf(
  { witness }: TestCluster,
  requests: readonly TappedRequest[],
  deletedByPeople: ReadonlySet<string>,
  endAt: number,
): History {
  const nodes = new Map([...witness.nodes].map(([node, moments]) => [node, turnsOf(moments)]));
  const pods = [...witness.pods.values()].map((pod) => ({
    uid: pod.uid,
    name: pod.name,
    node: pod.node,
    turns: pod.moments.map(({ at, labels, tolerations }) => ({
      askedAt: askedAt(labels, at),
      seenAt: at,
      tolerations,
    })),
    leftAt: pod.evictedAt,
    deletedByPeople: deletedByPeople.has(pod.uid),
  }));
  const nodeOf = new Map(pods.map(({ uid, node }) => [uid, node]));
  return { nodes, pods, deletes: deletesIn(requests, nodeOf), endAt };
}

/** Heartbeats change no taints. */
function turnsOf(moments: readonly NodeMoment[]): readonly NodeTurn[] {
  const text = ({ taints }: NodeMoment) => JSON.stringify(taints);
  return moments
    .filter((moment, index) => index === 0 || text(moment) !== text(moments[index - 1] ?? moment))
    .map(({ at, labels, taints }) => ({ askedAt: askedAt(labels, at), seenAt: at, taints }));
}

function deletesIn(
  requests: readonly TappedRequest[],
  nodeOf: ReadonlyMap<string, string>,
): readonly SentDelete[] {
  const looks = Map.groupBy(
    requests.filter(({ method, path }) => method === 'GET' && NODE.test(path)),
    ({ path }) => NODE.exec(path)?.[1] ?? '',
  );
  return requests
    .filter(({ method, path, forwardedAt }) => method === 'DELETE' && POD.test(path) && forwardedAt)
    .map(({ at, body, status }) => {
      const { preconditions } = JSON.parse(body) as { readonly preconditions?: { readonly uid?: string } };
      const uid = preconditions?.uid ?? '';
      const seen = (looks.get(nodeOf.get(uid) ?? '') ?? []).filter(({ endedAt = Infinity }) => endedAt <= at);
      const look = seen.toSorted((a, b) => (a.endedAt ?? 0) - (b.endedAt ?? 0)).at(-1);
      const { endedAt = 0, forwardedAt = 0 } = look ?? {};
      const lookedAt = at - endedAt <= LOOK_IS_FRESH_MS ? forwardedAt : at - LOOK_IS_FRESH_MS;
      return { uid, lookedAt, status };
    });
}

const NODE = /^\/api\/v1\/nodes\/([^/?]+)$/;
const POD = /^\/api\/v1\/namespaces\/[^/]+\/pods\/[^/?]+$/;
