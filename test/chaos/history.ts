import type { TappedRequest } from '#test/cluster/rig/wiretap.ts';
import type { NodeMoment, Witness } from '#test/cluster/rig/witness.ts';
import type { History, NodeTurn, SentDelete, Time } from './judge.ts';
import { askedAt } from './people.ts';

/** A delete is sent so long after the answer about its node at the latest, as the service promises. */
const LOOK_MAX_AGE_MS = 250;
/** What answer and delete may take between proxy and service besides, on a machine that is busy. */
const BOTH_WAYS_MS = 500;
const OLDEST_MS = LOOK_MAX_AGE_MS + BOTH_WAYS_MS;

/** What passed the proxy, and what else it takes to judge deletes by that. */
export interface Passed {
  readonly requests: readonly TappedRequest[];
  /** While an answer that was given was not heard. */
  readonly unheard: readonly Time[];
}

/** What the witness saw, straight at the API server, and what the proxy saw of deletes. */
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
      askedAt: askedAt(labels, at),
      seenAt: at,
      tolerations,
    })),
    leftAt: pod.evictedAt,
    deletedByPeople: deletedByPeople.has(pod.uid),
  }));
  const nodeOf = new Map(pods.map(({ uid, node }) => [uid, node]));
  return { nodes, pods, deletes: deletesIn(passed, nodeOf), endAt };
}

/** Heartbeats change no taints. */
function turnsOf(moments: readonly NodeMoment[]): readonly NodeTurn[] {
  const text = ({ taints }: NodeMoment) => JSON.stringify(taints);
  return moments
    .filter((moment, index) => index === 0 || text(moment) !== text(moments[index - 1] ?? moment))
    .map(({ at, labels, taints }) => ({ askedAt: askedAt(labels, at), seenAt: at, taints }));
}

function deletesIn(
  { requests, unheard }: Passed,
  nodeOf: ReadonlyMap<string, string>,
): readonly SentDelete[] {
  const looksOf = looksIn(requests);
  return requests
    .filter(({ method, path, forwardedAt }) => method === 'DELETE' && POD.test(path) && forwardedAt)
    .map(({ at, body, status }) => {
      const { preconditions } = JSON.parse(body) as { readonly preconditions?: { readonly uid?: string } };
      const uid = preconditions?.uid ?? '';
      const looks = (looksOf.get(nodeOf.get(uid) ?? '') ?? []).filter(({ toldAt }) => toldAt <= at);
      const ageOf = ({ toldAt }: Look) => at - toldAt - together({ from: toldAt, to: at }, unheard);
      const lookAgeMs = looks.length > 0 ? Math.min(...looks.map(ageOf)) : undefined;
      // Others look at the node, too: the newest look need not be the one of this delete.
      const possible = looks.filter((look) => ageOf(look) <= OLDEST_MS);
      return {
        uid,
        lookedAt: possible.length > 0 ? Math.min(...possible.map((look) => look.askedAt)) : at - OLDEST_MS,
        sentAt: at,
        lookAgeMs,
        status,
      };
    });
}

/** For how long of a time one of these was. */
const together = ({ from, to }: Time, times: readonly Time[]): number =>
  times.reduce((sum, each) => sum + Math.max(0, Math.min(to, each.to) - Math.max(from, each.from)), 0);

/** A node, as it was shown to the service: as it was at `askedAt` or later. */
interface Look {
  readonly askedAt: number;
  readonly toldAt: number;
}

function looksIn(requests: readonly TappedRequest[]): ReadonlyMap<string, readonly Look[]> {
  const looks = requests.flatMap(({ method, path, forwardedAt, told }) => {
    const node = method === 'GET' ? NODE.exec(path)?.[1] : undefined;
    if (node === undefined || forwardedAt === undefined || told?.status !== 200) return [];
    return [{ node, askedAt: forwardedAt, toldAt: told.at }];
  });
  return Map.groupBy(looks, ({ node }) => node);
}

const NODE = /^\/api\/v1\/nodes\/([^/?]+)$/;
const POD = /^\/api\/v1\/namespaces\/[^/]+\/pods\/[^/?]+$/;
