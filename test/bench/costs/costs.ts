import type { Scenario } from '#test/bench/scenario.ts';
import { PRICES } from '#test/costs/prices.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, tolerating } from '#test/unit/eviction/builders.ts';
import { type Bill, CountedAccount } from './counted-account.ts';

/** A scenario for a node's pods. */
interface Story {
  readonly what: string;
  readonly pods: number;
  /** Seconds for which they tolerate the taint; 0: not at all. */
  readonly seconds: number;
  /** The node is untainted in time, so no pods are evicted. */
  readonly saved?: true;
  /** Pods per second, where policy has a rate. */
  readonly evictionRate?: number;
}

/** The scenario of the guide's calculation, and the maximum for one of its pods and for a million of them. */
const AIMED_AT: Story = { what: '50 pods of a node, after 5 minutes', pods: 50, seconds: 300 };
const MAX = { calls: 0.54, dollars: 2.8 } as const;

const STORIES: readonly Story[] = [
  { what: '1 pod of a node, at once', pods: 1, seconds: 0 },
  { what: '50 pods of a node, at once', pods: 50, seconds: 0 },
  AIMED_AT,
  { what: '50 pods of a node, after an hour', pods: 50, seconds: 3600 },
  { what: '50 pods of a node, untainted in time', pods: 50, seconds: 300, saved: true },
  { what: '110 pods of a node, at once', pods: 110, seconds: 0 },
  { what: '50 pods of a node, after 5 minutes, at 20 a second', pods: 50, seconds: 300, evictionRate: 20 },
  { what: '50 pods of a node, after 5 minutes, at 1 a second', pods: 50, seconds: 300, evictionRate: 1 },
];

const PEER = 'an item, a schedule and an invocation for each pod';
const MILLION = 1_000_000;

/** Measures the AWS requests and the costs of evictions. */
export const costs: Scenario = {
  about: 'calls of AWS and dollars for each pod, without computing time and logs',
  async run(report) {
    for (const story of STORIES) {
      const { what, pods } = story;
      const own = await billOf(story);
      const peer = plainBill(story);
      const perPod = (calls: number) => Math.round((calls / pods) * 1000) / 1000;
      const aims = story === AIMED_AT ? MAX : undefined;
      report({
        what: `${what}: calls a pod`,
        unit: 'calls',
        ours: [perPod(own.calls)],
        peer: { name: PEER, values: [peer.calls] },
        ...(aims && { aim: { of: 'value', atMost: aims.calls } }),
      });
      report({
        what: `${what}: dollars a million pods`,
        unit: '$',
        ours: [Math.round((own.dollars / pods) * MILLION * 100) / 100],
        peer: { name: PEER, values: [Math.round(peer.dollars * MILLION * 100) / 100] },
        ...(aims && { aim: { of: 'value', atMost: aims.dollars } }),
      });
    }
  },
};

async function billOf({ pods, seconds, saved, evictionRate }: Story): Promise<Bill> {
  const account = new CountedAccount(at(0), evictionRate);
  const { cluster, view, clock } = account;
  const tolerations = seconds === 0 ? [] : [tolerating('a', seconds)];
  cluster.putNode(liveNode('n1'));
  for (let pod = 0; pod < pods; pod++) {
    const uid = `0c7f4a52-7f0e-4f0b-9d0e-${String(pod).padStart(12, '0')}`;
    cluster.putPod(
      livePod(uid, { name: `web-5d9c7b7f6b-${uid.slice(-5)}`, namespace: 'payments', tolerations }),
    );
  }
  const live = () => [...cluster.liveNodes.values()];
  view.replaceNodes(live(), clock.now());
  view.replacePods([...cluster.livePods.values()], clock.now());
  const push = async (...taints: readonly string[]) => {
    cluster.putNode(liveNode('n1', ...taints));
    for (const node of live()) await account.deliver(view.upsertNode(node, clock.now()));
  };
  await clock.advanceTo(at(10));
  await push('a');
  if (saved) {
    await clock.advanceTo(at(60));
    await push();
  }
  await clock.advanceTo(at(10 + seconds + 120));
  const left = cluster.livePods.size;
  if (left !== (saved ? pods : 0)) throw new Error(`${left} of ${pods} pods are left.`);
  return account.bill;
}

/**
 * Returns the costs of a plain design at the same prices, one pod at a time: a message, an item, and a schedule where
 * it has time.
 */
function plainBill({ seconds, saved }: Story): Bill {
  const timed = seconds > 0;
  const invocations = timed ? 2 : 1;
  const [messageCalls, itemCalls, scheduleCalls] = [3, 2, timed ? (saved ? 2 : 1) : 0];
  return {
    calls: messageCalls + itemCalls + scheduleCalls,
    dollars:
      (messageCalls * PRICES.sqsStandardPerMillion +
        itemCalls * PRICES.dynamoDbWritesPerMillion +
        // Only the creation of a schedule costs more than a call.
        (timed ? PRICES.schedulerPerMillion : 0) +
        invocations * PRICES.lambdaRequestsPerMillion) /
      MILLION,
  };
}
