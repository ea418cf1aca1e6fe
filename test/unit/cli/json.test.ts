import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { clusterName, podUid } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { FAULT_TYPES } from '#shared/state/fault.ts';
import { aNode, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { assertMatches, assertPublished, SCHEMAS, schemaNameOf } from '#test/contracts/published-schemas.ts';
import { leavesOf } from '../../../docs/generator/cli-page.ts';
import { commandLine, NOW } from './command-line.ts';

const PROD = clusterName('prod');

test('publishes the schema of every command with an output format, and no other', () => {
  const program = createProgram({} as CliDeps);
  const printing = leavesOf(program, program.createHelp())
    .filter(({ options }) => options.some(({ long }) => long === '--output'))
    .flatMap((command) => {
      const options = command.options.flatMap(({ long }) => long ?? []);
      const path = command.parent === program ? [] : [command.parent?.name() ?? ''];
      const words = [...path, command.name()];
      if (options.includes('--dry-run')) return schemaNameOf([...words, '--dry-run']);
      const forms = ['--by', '--compare', '--stuck'].filter((form) => options.includes(form));
      return [words, ...forms.map((form) => [...words, form])].map(schemaNameOf);
    });
  const published = readdirSync(SCHEMAS).map((file) => file.replace('.schema.json', ''));
  assert.deepEqual([...new Set([...printing, 'console'])].sort(), published.sort());
});

test('prints what the schemas allow, whatever there is to print', async (t) => {
  const { run, fleet, store, leases, letters } = commandLine(t);
  const file = join(mkdtempSync(join(tmpdir(), 'policy-')), 'policy.yaml');
  t.after(() => rmSync(join(file, '..'), { recursive: true }));
  writeFileSync(file, 'mode: observe\nreleaseRate: 5\n');
  const operator = await fleet.operator();
  const reason = 'a test';
  const target = { kind: 'pod', namespace: 'default', name: 'held' } as const;
  await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce\n' }, operator);
  await perform({ kind: 'hold', cluster: PROD, target, reason, durationMs: 60_000 }, operator);
  await perform({ kind: 'stop', cluster: PROD, reason }, operator);
  const due = NOW - 120_000;
  const records = [
    aRecord({ name: 'held', dueAt: due, held: { by: { kind: 'observe' }, since: due } }),
    aRecord({ name: 'failed', dueAt: due, gaveUpAt: NOW, failure: { since: due, error: 'denied' } }),
    aRecord({ name: 'retried', dueAt: due, failure: { since: due, error: 'denied' } }),
    aRecord({ name: 'blocked', dueAt: due, blocked: { since: due, nextTryAt: NOW + 1, reason: 'a budget' } }),
    aRecord({ name: 'limited', dueAt: due, turnAt: NOW + 1 }),
    aRecord({ name: 'later' }),
  ].map((record) => ({ ...record, uid: podUid(record.name) }));
  await store.commit(aRef(PROD), 0, { node: aNode(), schedule: records, end: [], live: true }, NOW);
  const faults = FAULT_TYPES.map((type) => ({ type, since: NOW, error: 'It fails.' }));
  const lease = (await leases.take(PROD, undefined, 'relay-1', NOW)) ?? assert.fail('there is no lease');
  await leases.renew(lease, { renewedAt: NOW, lastContactAt: NOW, nodes: 3, faults });
  letters.add('evictions-due', { body: JSON.stringify({ dueAt: NOW }) }, 'nobody can read it');
  for (const line of [
    ...['status', 'status prod', 'doctor', 'holds', 'audit', 'history', 'history --compare'],
    ...['pending', 'pending --held', 'pending --by node', 'pending --by workload'],
    ...['explain node node-1 --cluster prod', 'explain pod default/held --cluster prod'],
    ...[
      `policy diff prod -f ${file}`,
      'resume prod --reason why --dry-run',
      'retry prod --reason why --dry-run',
    ],
  ])
    assert.notDeepEqual(JSON.parse(await run(...line.split(' '), '-o', 'json')), [], line);
  const [letter] = JSON.parse(await run('dead-letters', 'list', '-o', 'json'));
  assert.deepEqual([letter.since, letter.body], [new Date(NOW).toISOString(), { dueAt: NOW }]);

  const status = JSON.parse(await run('status', '-o', 'json'));
  assert.throws(() => assertMatches('status', { ...status, extra: 1 }), /Unrecognized key: "extra"/);
  const [cluster] = status.clusters;
  const grown = JSON.stringify({ ...status, clusters: [{ ...cluster, trips: [{ extra: 1 }] }] });
  assert.throws(() => assertPublished(['status', '-o', 'json'], grown), /clusters\[0\]\.trips\[0\]/);
});
