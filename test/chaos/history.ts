import type { TappedRequest } from '#test/cluster/rig/wiretap.ts';
import type { NodeMoment, Witness } from '#test/cluster/rig/witness.ts';
import type { History, NodeTurn, SentDelete, Time } from './judge.ts';
import { requestedAt } from './users.ts';

/** The maximum time between the response about its node and a delete, as the service promises. */
const NODE_MAX_AGE_MS = 250;
/** The additional time of response and delete between proxy and service, on a busy machine. */
const BOTH_WAYS_MS = 500;
const OLDEST_MS = NODE_MAX_AGE_MS + BOTH_WAYS_MS;

/** The requests at the proxy, and further data for judging deletes by them. */
export interface Passed {
  readonly requests: readonly TappedRequest[];
  /** The times in which sent responses were not received. */
  readonly unreported: readonly Time[];
}

/**
 * Returns the history from the witness, which watches the API server directly, and from the proxy's record of deletes.
 */
export function historyOf(
  seen: Pick<Witness, 'nodes' | 'pods'>,
  passed: Passed,
  deletedByPeople: ReadonlySet<string>,
  endAt: number,
): History {
  const nodes = new Map([...seen.nodes].map(([node, moments]) => [node, turnsOf(moments)]));
  const pods = [...seen.pods.values()].map((pod) => ({
    uid: pod.uid,
    name: pod.name,
    node: pod.node,
    turns: pod.moments.map(({ at, labels, tolerations }) => ({
      requestedAt: requestedAt(labels, at),
      seenAt: at,
      tolerations,
    })),
    leftAt: pod.evictedAt,
    deletedByPeople: deletedByPeople.has(pod.uid),
  }));
  const nodeOf = new Map(pods.map(({ uid, node }) => [uid, node]));
  return { nodes, pods, deletes: deletesIn(passed, nodeOf), endAt };
}

/** Returns the changes of taints; heartbeats change none. */
function turnsOf(moments: readonly NodeMoment[]): readonly NodeTurn[] {
  const text = ({ taints }: NodeMoment) => JSON.stringify(taints);
  return moments
    .filter((moment, index) => index === 0 || text(moment) !== text(moments[index - 1] ?? moment))
    .map(({ at, labels, taints }) => ({ requestedAt: requestedAt(labels, at), seenAt: at, taints }));
}

function deletesIn(
  { requests, unreported }: Passed,
  nodeOf: ReadonlyMap<string, string>,
): readonly SentDelete[] {
  const readsOf = readsIn(requests);
  return requests
    .filter(({ method, path, forwardedAt }) => method === 'DELETE' && POD.test(path) && forwardedAt)
    .map(({ at, body, status }) => {
      const { preconditions } = JSON.parse(body) as { readonly preconditions?: { readonly uid?: string } };
      const uid = preconditions?.uid ?? '';
      const reads = (readsOf.get(nodeOf.get(uid) ?? '') ?? []).filter(({ answeredAt }) => answeredAt <= at);
      const ageOf = ({ answeredAt }: NodeRead) =>
        at - answeredAt - together({ from: answeredAt, to: at }, unreported);
      const readAgeMs = reads.length > 0 ? Math.min(...reads.map(ageOf)) : undefined;
      // Other components also read the node, so the newest read need not belong to this delete.
      const possible = reads.filter((read) => ageOf(read) <= OLDEST_MS);
      return {
        uid,
        readAt: possible.length > 0 ? Math.min(...possible.map((read) => read.requestedAt)) : at - OLDEST_MS,
        sentAt: at,
        readAgeMs: readAgeMs,
        status,
      };
    });
}

/** Returns the part of a time that overlaps with the given times, in ms. */
const together = ({ from, to }: Time, times: readonly Time[]): number =>
  times.reduce((sum, each) => sum + Math.max(0, Math.min(to, each.to) - Math.max(from, each.from)), 0);

/** A node as shown to the service: its state at `askedAt` or later. */
interface NodeRead {
  readonly requestedAt: number;
  readonly answeredAt: number;
}

function readsIn(requests: readonly TappedRequest[]): ReadonlyMap<string, readonly NodeRead[]> {
  const reads = requests.flatMap(({ method, path, forwardedAt, answer }) => {
    const node = method === 'GET' ? NODE.exec(path)?.[1] : undefined;
    if (node === undefined || forwardedAt === undefined || answer?.status !== 200) return [];
    return [{ node, requestedAt: forwardedAt, answeredAt: answer.at }];
  });
  return Map.groupBy(reads, ({ node }) => node);
}

const NODE = /^\/api\/v1\/nodes\/([^/?]+)$/;
const POD = /^\/api\/v1\/namespaces\/[^/]+\/pods\/[^/?]+$/;
