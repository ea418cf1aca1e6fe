import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NotedProofs, whyNotEvicting } from '#shared/engine/evict/proofs.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { PROBE_NODE, probeRef } from '#shared/eviction/probe.ts';
import { permissionText } from '#shared/kubernetes/permissions.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { at, ref, rules } from '#test/unit/eviction/builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const away = () => Promise.reject(new Error('away'));

describe('evictions work', () => {
  const api = {
    skews: [{ leastMs: 0, mostMs: 0 }],
    getNode: async (name: string) => assert.equal(name, PROBE_NODE),
    allowed: async (_: Parameters<typeof permissionText>[0]) => true,
  };
  const store = {
    load: async (...args: readonly unknown[]) => assert.deepEqual(args, [probeRef(ref.cluster), at(60), []]),
  };
  const deps = (fields: object = {}, apiFields: object = {}) =>
    ({
      rules: async () => rules,
      store,
      clusters: { api: async (_: ClusterName) => ({ ...api, ...apiFields }) },
      clock: new DrivenClock(at(60)),
      ...fields,
    }) as never;
  const lacking = (...texts: readonly string[]) => ({
    allowed: async (need: Parameters<typeof permissionText>[0]) => !texts.includes(permissionText(need)),
  });
  const evicting = { ...rules, policy: { ...rules.policy, method: { kind: 'evict' as const } } };

  const CASES: readonly (readonly [string, never, string | undefined])[] = [
    ['if each step does', deps(), undefined],
    ['only with the rules', deps({ rules: away }), "the cluster's rules can't be read: away"],
    ['only with the stored state', deps({ store: { load: away } }), "the stored state can't be read: away"],
    ['only with access', deps({ clusters: { api: away } }), "the cluster can't be reached: away"],
    ['only if the API server answers', deps({}, { getNode: away }), "the cluster can't be reached: away"],
    [
      'only if permissions are known',
      deps({}, { allowed: away }),
      "the API server doesn't say which permissions the credentials have: away",
    ],
    [
      'only with the permissions',
      deps({}, lacking('delete pods', 'get nodes')),
      'the credentials lack the permission to get nodes, delete pods',
    ],
    ['without the permissions of other policies', deps({}, lacking('create pods/eviction')), undefined],
    [
      'only with the permissions of the policy',
      deps({ rules: async () => evicting }, lacking('create pods/eviction')),
      'the credentials lack the permission to create pods/eviction',
    ],
    [
      'only if clocks agree',
      deps({}, { skews: [{ leastMs: 31_000, mostMs: 32_000 }] }),
      "evictions are held because clocks differ: the API server's clock is at least 31s ahead of the clock of the evicting process",
    ],
  ];
  for (const [name, given, expected] of CASES)
    test(name, async () => assert.equal(await whyNotEvicting(ref.cluster, given), expected));
});

describe('noted proofs', () => {
  function bench() {
    const clock = new DrivenClock(at(0));
    const log = recordingLog();
    const written: string[] = [];
    const notes = {
      notedProbe: async (...[cluster, sentAt, now, failure]: readonly unknown[]) => {
        written.push(`probe ${cluster} ${Number(sentAt) - at(0)} ${Number(now) - at(0)} ${failure}`);
      },
      notedPass: async (cluster: ClusterName, now: number) => {
        written.push(`pass ${cluster} ${now - at(0)}`);
      },
    };
    return { clock, log, written, notes, proofs: new NotedProofs({ notes, clock, log }) };
  }
  const warned = (error: unknown) => ({
    level: 'warn',
    event: 'takeover.probe-failed',
    fields: { cluster: ref.cluster, error },
  });

  test('are of passes at most every 5 s, and only in a cluster that was probed within 10 min', async () => {
    const { clock, log, written, proofs } = bench();
    await proofs.passed(ref.cluster);
    await clock.advanceTo(at(1));
    await proofs.probed(ref.cluster, at(0.5), undefined);
    for (const seconds of [1, 6, 7, 601, 602]) {
      await clock.advanceTo(at(seconds));
      await proofs.passed(ref.cluster);
      await proofs.passed(clusterName('other'));
    }
    assert.deepEqual(written, [
      'probe c1 500 1000 undefined',
      'pass c1 1000',
      'pass c1 7000',
      'pass c1 601000',
    ]);
    assert.deepEqual(log.lines, []);
  });

  test('include the failure of a probe, which is logged', async () => {
    const { log, written, proofs } = bench();
    await proofs.probed(ref.cluster, at(0), 'no permission');
    assert.deepEqual(written, ['probe c1 0 0 no permission']);
    assert.deepEqual(log.lines, [warned('no permission')]);
  });

  test('reject no pass and no probe when they cannot be written', async () => {
    const { log, notes, proofs } = bench();
    Object.assign(notes, { notedProbe: away, notedPass: away });
    await proofs.probed(ref.cluster, at(0), undefined);
    await proofs.passed(ref.cluster);
    assert.deepEqual(log.lines, [warned(new Error('away')), warned(new Error('away'))]);
  });
});
