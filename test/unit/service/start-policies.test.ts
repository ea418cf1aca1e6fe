import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type ChosenPolicies, StartPolicies } from '#functions/service/start-policies.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { parsePolicyDocument } from '#shared/state/policy-document.ts';
import { policyFile } from '#shared/state/policy-file.ts';
import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { StoreError } from '#shared/state/store.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const [prod, stage] = [clusterName('prod'), clusterName('stage')];

function aStart(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'policies-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'policy.yaml');
  const rulesStore = new SqliteRulesStore({ database: openRulesDatabase(':memory:') });
  const clock = new DrivenClock(1);
  const operator = { rulesStore, clock, actor: 'anna@host' };
  const log = recordingLog();
  return {
    file,
    rulesStore,
    operator,
    log,
    write: (text: string) => writeFileSync(file, text),
    start: async (chosen: ChosenPolicies) => {
      const policies = new StartPolicies(chosen, [prod, stage], { operator, log });
      await policies.apply();
      return policies;
    },
    follow: (chosen: ChosenPolicies) => new StartPolicies(chosen, [prod, stage], { operator, log }).follow(),
    modes: async () => {
      const read = await rulesStore.readAll([prod, stage]);
      return [...read.values()].map(({ orders }) => orders.policy?.read.mode);
    },
  };
}

test('enforces clusters without a policy as long as the command line does', async (t) => {
  const { start, modes, operator } = aStart(t);
  await perform({ kind: 'apply-policy', cluster: prod, text: 'mode: observe' }, operator);
  await start({ enforce: true });
  assert.deepEqual(await modes(), ['observe', 'enforce']);
  await start({ enforce: true });
  assert.deepEqual(await modes(), ['observe', 'enforce']);
  await start({ enforce: false });
  assert.deepEqual(await modes(), ['observe', undefined]);
});

test('applies the policy of a file in all clusters and keeps it without the file', async (t) => {
  const { start, modes, file, write } = aStart(t);
  write('mode: enforce');
  await start({ enforce: false, source: policyFile(file) });
  assert.deepEqual(await modes(), ['enforce', 'enforce']);
  await start({ enforce: false });
  assert.deepEqual(await modes(), ['enforce', 'enforce']);
});

test('applies nothing if the file is missing or invalid', async (t) => {
  const { start, modes, file, write } = aStart(t);
  await assert.rejects(start({ enforce: true, source: policyFile(file) }), {
    name: 'PolicyError',
    message: `Can't read the policy ${file} (ENOENT). Specify a readable file.`,
  });
  write('mode: on');
  await assert.rejects(start({ enforce: true, source: policyFile(file) }), {
    name: 'PolicyError',
    message: `${file}: policy.mode must be observe or enforce.`,
  });
  assert.deepEqual(await modes(), [undefined, undefined]);
});

test('applies nothing if the file names impossible keys, unless it was applied before', async (t) => {
  const { start, modes, file, write, rulesStore } = aStart(t);
  write('mode: enforce\nexclude: [{ taints: [maintenance-*] }]');
  await assert.rejects(start({ enforce: true, source: policyFile(file) }), {
    name: 'PolicyError',
    message: `${file}: policy.exclude[0].taints[0] must be the key of a taint, written out: a * matches nothing, so list each one.`,
  });
  assert.deepEqual(await modes(), [undefined, undefined]);
  // An earlier release accepted and applied the policy.
  const text = readFileSync(file, 'utf8');
  for (const cluster of [prod, stage]) {
    const { orders } = await rulesStore.read(cluster);
    const policy = { text, read: parsePolicyDocument(text), revision: 1 };
    const entry = { cluster, actor: 'anna', at: 1, kind: 'policy', message: 'applied a policy' } as const;
    await rulesStore.changeOrders(cluster, orders, { ...orders, policy }, entry);
  }
  await start({ enforce: true, source: policyFile(file) });
  assert.deepEqual(await modes(), ['enforce', 'enforce']);
});

test('starts with a file whose exclusion has expired', async (t) => {
  const { start, modes, file, write } = aStart(t);
  write('mode: enforce\nexclude: [{ taints: [a], until: 1970-01-01T00:00:00Z }]');
  await start({ enforce: false, source: policyFile(file) });
  assert.deepEqual(await modes(), ['enforce', 'enforce']);
});

test('a new leader keeps the applied policy if its file is invalid', async (t) => {
  const { start, follow, modes, file, write, log } = aStart(t);
  write('mode: off');
  await follow({ enforce: true, source: policyFile(file) });
  // The file may specify another mode than enforce.
  assert.deepEqual(await modes(), [undefined, undefined]);
  write('mode: observe');
  await start({ enforce: true, source: policyFile(file) });
  write('mode: off');
  await follow({ enforce: true, source: policyFile(file) });
  assert.deepEqual(await modes(), ['observe', 'observe']);
  const refused = `PolicyError: ${file}: policy.mode must be observe or enforce.`;
  assert.deepEqual(
    log.lines.flatMap(({ event, fields }) => (event === 'policy.invalid' ? `${fields['error']}` : [])),
    [refused, refused],
  );
  write('mode: enforce');
  await follow({ enforce: true, source: policyFile(file) });
  assert.deepEqual(await modes(), ['enforce', 'enforce']);
});

test('applies a changed file again, and logs an error in it once without applying it', async (t) => {
  const { start, modes, file, write, log } = aStart(t);
  let before = 0;
  const logged = () =>
    log.lines.slice(before).map(({ event, fields }) => `${event} ${fields['mode'] ?? fields['error']}`);
  write('mode: enforce');
  const policies = await start({ enforce: false, source: policyFile(file) });
  await policies.follow();
  before = log.lines.length;

  write('mode: off');
  await policies.follow();
  await policies.follow();
  assert.deepEqual(logged(), [
    `policy.invalid PolicyError: ${file}: policy.mode must be observe or enforce.`,
  ]);
  assert.deepEqual(await modes(), ['enforce', 'enforce']);

  write('mode: observe');
  await policies.follow();
  assert.deepEqual(await modes(), ['observe', 'observe']);
});

for (const [what, corrected] of [
  ['its previous text', 'mode: enforce'],
  ['another policy', 'mode: observe'],
] as const) {
  test(`logs the same error in a file again after the file had ${what}`, async (t) => {
    const { start, file, write, log } = aStart(t);
    write('mode: enforce');
    const policies = await start({ enforce: false, source: policyFile(file) });
    for (const text of ['mode: off', corrected, 'mode: off']) {
      write(text);
      await policies.follow();
    }
    assert.equal(log.lines.filter(({ event }) => event === 'policy.invalid').length, 2);
  });
}

test('rejects while the rules cannot be stored, and applies the file as soon as they can', async (t) => {
  const { start, modes, file, write, log, rulesStore } = aStart(t);
  write('mode: enforce');
  const policies = await start({ enforce: false, source: policyFile(file) });
  write('mode: observe');
  const failing = t.mock.method(rulesStore, 'read', async () => {
    throw new StoreError('the disk is full');
  });
  await assert.rejects(policies.follow(), /the disk is full/);
  failing.mock.restore();
  await policies.follow();
  assert.deepEqual(await modes(), ['observe', 'observe']);
  assert.equal(log.lines.filter(({ event }) => event === 'policy.invalid').length, 0);
});
