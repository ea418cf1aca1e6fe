import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ownProver } from '#functions/service/service.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { StoreError } from '#shared/state/store.ts';
import { EvictBench } from '#test/unit/engine/evict/evict-bench.ts';
import { at, ref, rules } from '#test/unit/eviction/builders.ts';

const prove = (bench: EvictBench) => ownProver(bench).prove(ref.cluster, new AbortController().signal);

const away = async () => {
  throw new StoreError('the disk is full');
};

const FAILING: readonly [string, (bench: EvictBench) => void, string][] = [
  [
    'rules that cannot be read',
    (bench) => Object.assign(bench, { rules: away }),
    "the cluster's rules can't be read: the disk is full",
  ],
  [
    'a state that cannot be read',
    ({ store }) => Object.assign(store, { load: away }),
    "the stored state can't be read: the disk is full",
  ],
  [
    'an API server that rejects the credentials',
    ({ cluster }) => {
      cluster.beforeRequest = () => {
        throw new ApiError('Unauthorized', 401, 'Unauthorized');
      };
    },
    "the cluster can't be reached: Unauthorized",
  ],
  [
    'a lost permission to delete pods',
    ({ cluster }) => {
      cluster.allows = ({ verb }) => verb !== 'delete';
    },
    'the credentials lack the permission to delete pods',
  ],
  [
    'no permission to count replicas, by which policy limits evictions',
    (bench) => {
      const maxEvictionsPerWorkload = { count: '10%', windowMs: 60_000 } as const;
      bench.ruling = { ...rules, policy: { ...rules.policy, maxEvictionsPerWorkload } } as Rules;
      bench.cluster.allows = ({ group }) => group !== 'apps';
    },
    'the credentials lack the permission to get deployments, get replicasets, get statefulsets, get daemonsets',
  ],
  [
    'a clock that differs from that of the API server by more than 30 s',
    ({ cluster }) => {
      cluster.skewMs = -90_000;
    },
    "evictions are held because clocks differ: the API server's clock is at least 1m30s behind the clock of the evicting process",
  ],
];

describe('a service in one process', () => {
  test('verifies evictions by a full pass, as of the start of the pass', async () => {
    const bench = new EvictBench();
    assert.deepEqual(await prove(bench), { asOf: at(60) });
  });

  for (const [what, spoil, unproven] of FAILING) {
    test(`verifies nothing with ${what}`, async () => {
      const bench = new EvictBench();
      spoil(bench);
      assert.deepEqual(await prove(bench), { unproven });
    });
  }

  test('verifies evictions by permissions in the namespaces that include names', async () => {
    const bench = new EvictBench();
    bench.ruling = { ...rules, policy: { ...rules.policy, include: [{ namespaces: ['a', 'b'] }] } } as Rules;
    bench.cluster.allows = ({ verb, namespace }) => verb !== 'delete' || namespace !== undefined;
    assert.deepEqual(await prove(bench), { asOf: at(60) });
    bench.cluster.allows = ({ verb, namespace }) => verb !== 'delete' || namespace === 'a';
    assert.deepEqual(await prove(bench), {
      unproven: 'the credentials lack the permission to delete pods in b',
    });
  });

  test('verifies evictions without the permission to post Events', async () => {
    const bench = new EvictBench();
    bench.cluster.allows = ({ resource }) => resource !== 'events';
    assert.deepEqual(await prove(bench), { asOf: at(60) });
  });
});
