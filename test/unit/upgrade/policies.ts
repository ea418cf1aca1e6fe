import { StartPolicies } from '#functions/service/start-policies.ts';
import { DEFAULT_POLICY, type Policy } from '#shared/eviction/policy.ts';
import { parsePolicyDocument, policyText } from '#shared/state/policy-document.ts';
import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { logTo } from '#shared/telemetry/log.ts';
import { CLUSTER, NOW } from './messages.ts';
import { POLICY } from './stored.ts';

/** Policy documents by description. */
export type WrittenPolicies = Readonly<Record<string, string>>;

/** Documents as their owners write them. */
const BY_OWNERS = {
  'observe, and nothing else': 'mode: observe\n',
  'no guard': 'mode: enforce\nguard: off\n',
  'parts of a guard':
    'mode: enforce\nguard:\n  cluster: off\n  zone: { percent: 30% }\n  customTaints: { window: 15m }\n',
  'a guard that only tells': 'mode: enforce\nguard: { dryRun: true, customTaints: off }\n',
  'evict as it is without more': 'mode: enforce\nmethod: evict\n',
  'every setting': `# Of the shop.
mode: enforce
guard:
  dryRun: false
  cluster: { percent: 12.5, nodes: 4 }
  zone: { percent: 60%, nodes: 5 }
  customTaints: { percent: 25, nodes: 6, window: 90s }
evictionRate: 0.5
maxEvictionsPerWorkload: { count: 2, window: 30m }
releaseRate: 20
exclude:
  - namespaces: [kube-system, monitoring]
    until: 2026-12-24T00:00:00Z
  - labels:
      matchLabels: { app: db }
      matchExpressions:
        - { key: tier, operator: NotIn, values: [gold, silver] }
        - { key: legacy, operator: DoesNotExist }
include:
  - taints: [maintenance, node.kubernetes.io/unreachable]
  - labels: { matchExpressions: [{ key: evictable, operator: Exists }] }
  - annotations: { example.com/evict: "yes" }
    ownerKinds: [ReplicaSet, CloneSet]
    priorityClassNames: [low]
method: evict
evict: { timeout: 4h, onTimeout: fail }
tolerationSecondsOverrides: { maintenance: 60, node.kubernetes.io/not-ready: 0 }
requireExpiredLease: false
treatAsNoExecute: [node.kubernetes.io/unschedulable]
giveUpAfter: 4d
`,
};

const enforce: Policy = { ...DEFAULT_POLICY, mode: 'enforce' };
const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const EVERY_SETTING: Required<Policy> = {
  mode: 'enforce',
  guard: {
    dryRun: false,
    cluster: { percent: 12.5, nodes: 4 },
    zone: { percent: 60, nodes: 5 },
    customTaints: { percent: 25, nodes: 6, windowMs: 90_000 },
  },
  evictionRate: 0.5,
  releaseRate: 20,
  maxEvictionsPerWorkload: { count: 2, windowMs: 30 * MINUTE_MS },
  exclude: [
    { namespaces: ['kube-system', 'monitoring'], until: Date.UTC(2026, 11, 24) },
    {
      labels: {
        matchLabels: { app: 'db' },
        matchExpressions: [
          { key: 'tier', operator: 'NotIn', values: ['gold', 'silver'] },
          { key: 'legacy', operator: 'DoesNotExist' },
        ],
      },
    },
  ],
  include: [
    { taints: ['maintenance', 'node.kubernetes.io/unreachable'] },
    { labels: { matchExpressions: [{ key: 'evictable', operator: 'Exists' }] } },
    {
      annotations: { 'example.com/evict': 'yes' },
      ownerKinds: ['ReplicaSet', 'CloneSet'],
      priorityClassNames: ['low'],
    },
  ],
  method: { kind: 'evict', timeoutMs: 4 * 60 * MINUTE_MS, onTimeout: 'fail' },
  tolerationSecondsOverrides: { maintenance: 60, 'node.kubernetes.io/not-ready': 0 },
  requireExpiredLease: false,
  treatAsNoExecute: ['node.kubernetes.io/unschedulable'],
  giveUpAfterMs: 4 * DAY_MS,
};

/** The meaning of each document in every release, by description. */
export const POLICIES_MEANING: Readonly<Record<string, Policy>> = {
  'observe, and nothing else': DEFAULT_POLICY,
  'no guard': { ...enforce, guard: { dryRun: false } },
  'parts of a guard': {
    ...enforce,
    guard: {
      dryRun: false,
      zone: { percent: 30, nodes: 3 },
      customTaints: { percent: 30, nodes: 5, windowMs: 15 * MINUTE_MS },
    },
  },
  'a guard that only tells': {
    ...enforce,
    guard: { dryRun: true, cluster: { percent: 20, nodes: 3 }, zone: { percent: 55, nodes: 3 } },
  },
  'evict as it is without more': {
    ...enforce,
    method: { kind: 'evict', timeoutMs: 15 * MINUTE_MS, onTimeout: 'delete' },
  },
  'every setting': EVERY_SETTING,
  'the default, written out': DEFAULT_POLICY,
  'every setting, written out': POLICY,
  'of npm start --enforce': enforce,
};

/** Returns documents of each kind that the current code writes itself or accepts from owners. */
export const writtenPolicies = async (): Promise<WrittenPolicies> => ({
  ...BY_OWNERS,
  'the default, written out': policyText(DEFAULT_POLICY),
  'every setting, written out': policyText(POLICY),
  'of npm start --enforce': await enforced(),
});

/** Returns the policies that the current code reads from such documents. */
export const readPolicies = (written: WrittenPolicies): Readonly<Record<string, Policy>> =>
  Object.fromEntries(Object.entries(written).map(([name, text]) => [name, parsePolicyDocument(text)]));

async function enforced(): Promise<string> {
  const rulesStore = new SqliteRulesStore({ database: openRulesDatabase(':memory:') });
  const clock = { now: () => NOW };
  const operator = { rulesStore, clock, actor: 'anna@host' };
  const log = logTo(() => undefined);
  await new StartPolicies({ enforce: true }, [CLUSTER], { operator, log }).apply();
  const { policy } = (await rulesStore.read(CLUSTER)).orders;
  if (!policy) throw new Error('no policy was applied');
  return policy.text;
}
