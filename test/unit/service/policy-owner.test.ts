import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { StartPolicies } from '#functions/service/start-policies.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import type { RulesAct } from '#shared/operations/acts/act.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { configMapPolicy } from '#shared/state/objects/config-map-policy.ts';
import { ObjectRulesStore } from '#shared/state/objects/object-rules-store.ts';
import { type PolicySource, policyFile } from '#shared/state/policy-file.ts';
import type { RulesStore } from '#shared/state/rules-store.ts';
import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const prod = clusterName('prod');
const NOW = Date.UTC(2026, 10, 24);
const OBSERVE = { kind: 'apply-policy', cluster: prod, text: 'mode: observe\n' } as const;

interface Owner {
  readonly source: PolicySource;
  /** Absent text: it is deleted. */
  write(text?: string): Promise<void>;
}

function aFile(t: TestContext): Owner {
  const dir = mkdtempSync(join(tmpdir(), 'policy-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'policy.yaml');
  const write: Owner['write'] = async (text) =>
    text === undefined ? rmSync(file) : writeFileSync(file, text);
  return { source: policyFile(file), write };
}

function aConfigMap(_: TestContext, objects = new FakeObjects()): Owner {
  const metadata = { name: 'taintward-policy' };
  return {
    source: configMapPolicy(objects, 'taintward'),
    async write(text) {
      const found = (await objects.get(metadata.name)) as KubernetesObject | undefined;
      if (found) await objects.remove(metadata.name, `${found.metadata.resourceVersion}`);
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'policy.yaml': text } };
      if (text !== undefined) await objects.create(object);
    },
  };
}

function aService(owner: Owner, rulesStore: RulesStore) {
  const clock = new DrivenClock(NOW);
  const log = recordingLog();
  const operator = { rulesStore, clock, actor: 'taintward@pod' };
  const anna = { rulesStore, clock, actor: 'anna@laptop' };
  return {
    ...owner,
    log,
    process: (source: PolicySource | undefined = owner.source) =>
      new StartPolicies({ enforce: false, source }, [prod], { operator, log }),
    without: () => new StartPolicies({ enforce: false }, [prod], { operator, log }),
    act: (act: RulesAct) => perform(act, anna),
    policy: async () => (await rulesStore.read(prod)).orders.policy,
    mode: async () => (await rulesStore.read(prod)).orders.policy?.read.mode,
    stops: async () => (await rulesStore.read(prod)).orders.stops.length,
    audited: async () =>
      (await rulesStore.audit({ cluster: prod, from: 0, to: NOW + 1 })).map(({ message }) => message),
  };
}

for (const [what, anOwner, aStore] of [
  ['a file', aFile, () => new SqliteRulesStore({ database: openRulesDatabase(':memory:') })],
  ['a ConfigMap', aConfigMap, () => new ObjectRulesStore({ objects: new FakeObjects() })],
] as const) {
  describe(`a policy of ${what}`, () => {
    const started = async (t: TestContext) => {
      const service = aService(anOwner(t), aStore());
      await service.write('mode: enforce\n');
      await service.process().apply();
      return service;
    };

    test('is rejected from others in one sentence that names it, while stops and holds work', async (t) => {
      const { act, source, mode, stops } = await started(t);
      const message = `The policy of cluster prod belongs to ${source.owner}: change it there. Stops and holds always work: taintward stop prod.`;
      for (const other of [OBSERVE, { ...OBSERVE, text: 'mode: enforce\n' }])
        await assert.rejects(act(other), { name: 'OperatorError', message });
      await assert.rejects(act({ kind: 'withdraw-policy', cluster: prod }), { message });
      await act({ kind: 'stop', cluster: prod, reason: 'incident' });
      const target = { kind: 'pod', namespace: 'default', name: 'db-0' } as const;
      await act({ kind: 'hold', cluster: prod, target, reason: 'incident' });
      assert.deepEqual([await mode(), await stops()], ['enforce', 1]);
    });

    test('replaces the policy of a command, and is applied once, and whenever it changes', async (t) => {
      const service = aService(anOwner(t), aStore());
      const { act, write, process, mode, log } = service;
      await act(OBSERVE);
      for (const text of ['mode: enforce\n', 'mode: observe\n', 'mode: enforce\n']) {
        await write(text);
        for (const _ of [1, 2]) await process().follow();
        assert.equal(`mode: ${await mode()}\n`, text);
      }
      assert.deepEqual(
        log.lines.map(({ event, fields }) => `${event} ${fields['mode']}`),
        ['policy.applied enforce', 'policy.applied observe', 'policy.applied enforce'],
      );
    });

    test('owns the policy of a command with the same text', async (t) => {
      const { act, write, process, policy, source } = aService(anOwner(t), aStore());
      await act(OBSERVE);
      await write(OBSERVE.text);
      await process().apply();
      assert.equal((await policy())?.owner, source.owner);
    });

    test('ends no stop, and stays when it becomes invalid', async (t) => {
      const { act, write, process, mode, stops, log, source } = await started(t);
      await act({ kind: 'stop', cluster: prod, reason: 'incident' });
      await write('mode: off\n');
      const running = process();
      for (const _ of [1, 2]) await running.follow();
      assert.deepEqual([await mode(), await stops()], ['enforce', 1]);
      const invalid = log.lines.filter(({ event }) => event === 'policy.invalid');
      assert.deepEqual(
        invalid.map(({ fields }) => `${fields['error']}`),
        [`PolicyError: ${source.owner}: policy.mode must be observe or enforce.`],
      );
      await assert.rejects(process().apply(), { name: 'PolicyError' });
      await write('mode: observe\n');
      await running.follow();
      assert.deepEqual([await mode(), await stops()], ['observe', 1]);
    });

    test('never replaces what another process read later, when this one was suspended', async (t) => {
      const { write, process, mode, source } = await started(t);
      await write('mode: observe\n');
      let reads = 0;
      const suspended = async () => {
        const text = await source.read();
        if (++reads > 1) return text;
        await write('mode: enforce # again\n');
        await process().apply();
        return text;
      };
      await process({ ...source, read: suspended }).apply();
      assert.deepEqual([await mode(), reads], ['enforce', 2]);
    });

    test('stays in force without it, and commands own it again', async (t) => {
      const { act, without, mode, policy, audited, source } = await started(t);
      await without().apply();
      assert.deepEqual([await mode(), (await policy())?.owner], ['enforce', undefined]);
      await act(OBSERVE);
      await without().apply();
      assert.equal(await mode(), 'observe');
      assert.deepEqual((await audited()).slice(1), [
        `released the policy from ${source.owner}`,
        `applied the policy of ${source.owner}: enforce`,
      ]);
    });

    test('is decided again when another operator writes first', async (t) => {
      const rulesStore = aStore();
      const { write, process, act, mode } = aService(anOwner(t), rulesStore);
      await write('mode: enforce\n');
      const change = t.mock.method(rulesStore, 'changeOrders');
      change.mock.mockImplementationOnce(async (...given: Parameters<RulesStore['changeOrders']>) => {
        change.mock.restore();
        await act(OBSERVE);
        return rulesStore.changeOrders(...given);
      });
      await process().apply();
      assert.equal(await mode(), 'enforce');
    });
  });
}

describe('the ConfigMap of a policy', () => {
  test('leaves the policy to commands when it is deleted or was never created', async (t) => {
    const { write, process, act, mode } = aService(
      aConfigMap(t),
      new ObjectRulesStore({ objects: new FakeObjects() }),
    );
    await process().follow();
    assert.equal(await mode(), undefined);
    await write('mode: enforce\n');
    await process().follow();
    await write();
    await process().follow();
    await act(OBSERVE);
    assert.equal(await mode(), 'observe');
  });

  test('rejects as invalid without its key or the permission, and as unread while the API server fails', async (t) => {
    const objects = new FakeObjects();
    const { source } = aConfigMap(t, objects);
    const get = t.mock.method(objects, 'get');
    const answered = (answer: () => Promise<unknown>) => get.mock.mockImplementationOnce(answer as never);
    answered(async () => ({ data: { 'other.yaml': 'mode: enforce' } }));
    await assert.rejects(source.read(), {
      name: 'PolicyError',
      message: 'ConfigMap taintward/taintward-policy has no policy.yaml. Add it, or delete the ConfigMap.',
    });
    answered(() => Promise.reject(new ApiError('forbidden', 403)));
    await assert.rejects(source.read(), { name: 'PolicyError', message: 'forbidden' });
    answered(() => Promise.reject(new ApiError('no answer', 0)));
    await assert.rejects(source.read(), { name: 'StoreError' });
  });
});
