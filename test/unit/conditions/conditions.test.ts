import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  type ClusterFacts,
  CONDITIONS,
  connectionStatusOf,
  type FleetFacts,
  issuesOf,
} from '#shared/conditions/conditions.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { lateOf } from '#shared/operations/look/pending-state.ts';
import { FAULT_TYPES } from '#shared/state/fault.ts';
import { DISCONNECTED_AFTER_MS } from '#shared/state/lease.ts';
import { aNode, aRecord, NOW } from '#test/contracts/partition-builders.ts';
import { alertRules } from '#test/prometheus/alert-rules.ts';

const cluster = clusterName('prod');
const VIEW = { nodes: 0, tainted: 0, pods: 0, down: 0, customTaints: 0, breakerOpen: false };
const kindsOf = (facts: Partial<ClusterFacts>) =>
  issuesOf({
    at: NOW,
    clusters: [{ cluster, holder: 'relay-1', renewedAt: NOW, connection: 'connected', ...facts }],
  }).map(({ type }) => type);

test('reports a cluster as disconnected after the heartbeat timeout without contact', () => {
  assert.equal(connectionStatusOf(NOW - DISCONNECTED_AFTER_MS, NOW), 'connected');
  assert.equal(connectionStatusOf(NOW - DISCONNECTED_AFTER_MS - 1, NOW), 'disconnected');
  assert.equal(connectionStatusOf(undefined, NOW), 'never-connected');
  assert.deepEqual(kindsOf({ connection: 'disconnected' }), ['disconnected']);
});

test('does not also report a denied or syncing cluster as disconnected', () => {
  assert.deepEqual(kindsOf({ connection: 'disconnected', service: { ...VIEW, state: 'access-denied' } }), [
    'access-denied',
  ]);
  assert.deepEqual(kindsOf({ connection: 'disconnected', service: { ...VIEW, state: 'syncing' } }), []);
});

test('reports a connected cluster with an open breaker, from any source', () => {
  assert.deepEqual(kindsOf({ breakerOpen: true }), ['api-server-unreachable']);
  assert.deepEqual(kindsOf({ service: { ...VIEW, state: 'live', breakerOpen: true } }), [
    'api-server-unreachable',
  ]);
});

test('reports clock skew and taints with a future time', () => {
  const error = 'The clock is 1m behind: evictions are held.';
  const faults = [
    { type: 'taint-time-in-future', since: NOW, error },
    { type: 'clocks-differ', since: NOW, error },
  ] as const;
  const issues = issuesOf({
    at: NOW,
    clusters: [{ cluster, holder: 'relay-1', renewedAt: NOW, connection: 'connected', faults }],
  });
  assert.deepEqual(
    issues.map(({ type, message }) => [type, message]),
    [
      ['clocks-differ', error],
      ['taint-time-in-future', error],
    ],
  );
  for (const { remediation } of issues) assert.match(remediation ?? '', /^Synchronize /);
});

test('reports nothing else about an unreadable cluster', () => {
  assert.deepEqual(kindsOf({ error: 'It is away.', stuck: 1 }), ['unreadable']);
});

test("measures an eviction's delay from its own deadline, except while it is held", () => {
  const dueAt = NOW - 120_000;
  const delayMs = (...records: Parameters<typeof aRecord>[0][]) =>
    lateOf(
      records.map((each) => ({ record: aRecord({ dueAt, ...each }), state: undefined, gates: [] })),
      NOW,
    )[0]?.delayMs ?? 0;
  assert.equal(delayMs({}, { dueAt: NOW - 60_000 }), 120_000);
  assert.equal(delayMs({ turnAt: NOW - 30_000 }), 30_000);
  assert.equal(delayMs({ dueAt: NOW + 1 }), 0);
  const blocked = { since: dueAt, nextTryAt: dueAt, reason: 'a budget' };
  const state = { ...aNode(), blocked: { attempts: 5, nextTryAt: NOW - 10_000 } };
  const record = aRecord({ dueAt, blocked });
  assert.equal(lateOf([{ record, state, gates: [] }], NOW)[0]?.delayMs, 10_000);
  assert.equal(delayMs({ held: { by: { kind: 'observe' }, since: dueAt } }, { gaveUpAt: NOW }), 0);
  assert.deepEqual(kindsOf({ delayMs: 59_999 }), []);
  assert.deepEqual(kindsOf({ delayMs: 60_000 }), ['delayed']);
});

test('reports of a cluster that is managed under another name only that, with both names', () => {
  const error = 'prod and main are the same cluster, which is managed as main: name only one of the two.';
  const faults = [
    { type: 'list-failing', since: NOW, error, resource: 'nodes' },
    { type: 'same-cluster', since: NOW, error },
  ] as const;
  const found = issuesOf({
    at: NOW,
    clusters: [{ cluster, holder: 'relay-1', renewedAt: NOW, connection: 'never-connected', faults }],
  });
  assert.deepEqual(
    found.map(({ type, message }) => [type, message]),
    [['same-cluster', error]],
  );
  assert.match(found[0]?.remediation ?? '', /taintward clusters remove prod/);
});

test('names why an overdue eviction fails, instead of referring to doctor', () => {
  const issueOf = (facts: Partial<ClusterFacts>) =>
    issuesOf({ at: NOW, clusters: [{ cluster, delayMs: 120_000, ...facts }] })[0];
  const issue = issueOf({ delayCause: 'admission webhook "x" denied the request.' });
  assert.equal(
    issue?.message,
    'An eviction is overdue by 2m. It fails: admission webhook "x" denied the request.',
  );
  assert.equal(issue?.remediation, 'To find it, run taintward pending prod.');
  assert.match(issueOf({})?.remediation ?? '', /To find it, run taintward pending prod\.$/);
});

test('names the log event of a cluster that never connected', () => {
  const remediationOf = (connection: ClusterFacts['connection'] & string) =>
    issuesOf({ at: NOW, clusters: [{ cluster, holder: 'relay-1', renewedAt: NOW, connection }] })[0]
      ?.remediation ?? '';
  assert.match(
    remediationOf('never-connected'),
    /look for cluster\.unreachable or relay\.watch-failed in the log/,
  );
  assert.match(remediationOf('disconnected'), /look for relay\.watch-failed in the log/);
});

/** A cluster with one relay, which is connected unless `facts` say otherwise. */
const relayed = (facts: Partial<ClusterFacts>): Partial<FleetFacts> => ({
  clusters: [{ cluster, holder: 'relay-1', renewedAt: NOW, connection: 'connected', ...facts }],
});
const aStop = { scope: 'cluster', at: NOW, actor: 'anna', reason: 'an incident' } as const;

test('words each issue and its remediation as recorded', (t) => {
  const states: readonly Partial<FleetFacts>[] = [
    { process: 'not-running' },
    { process: 'not-running', ...relayed({ renewedAt: NOW - 60_000 }) },
    { process: 'not-responding', ...relayed({ renewedAt: NOW - 60_000 }) },
    relayed({ error: 'It is away.' }),
    { registryError: 'It is away' },
    relayed({ service: { ...VIEW, state: 'access-denied', why: 'It lacks permissions.' } }),
    relayed({ breakerOpen: true }),
    ...[NOW - 100_000, NOW - 130_000, undefined].map((lastContactAt) =>
      relayed({
        connection: lastContactAt === undefined ? 'never-connected' : 'disconnected',
        ...(lastContactAt === undefined ? {} : { lastContactAt }),
        faults: [
          { type: 'watch-failing', since: NOW, error: 'the connection was refused', resource: 'nodes' },
        ],
      }),
    ),
    relayed({ connection: 'disconnected' }),
    relayed({ connection: 'never-connected' }),
    relayed({ connection: 'stale', renewedAt: NOW - 60_000 }),
    { clusters: [{ cluster, connection: 'disconnected' }] },
    ...FAULT_TYPES.map((type) => relayed({ faults: [{ type, since: NOW, error: 'It fails', count: 2 }] })),
    ...[401, 410].map((status) =>
      relayed({
        faults: [{ type: 'list-failing', since: NOW, error: 'It fails', resource: 'pods', status }],
      }),
    ),
    relayed({
      trips: [
        { scope: 'zone', zone: 'a', nodes: 3, total: 4, trippedAt: NOW },
        {
          scope: 'cluster',
          nodes: 3,
          total: 9,
          trippedAt: NOW,
          affectedNow: 1,
          resetsBelow: 2,
          resetsAt: NOW,
        },
        { scope: 'customTaints', nodes: 3, total: 9, trippedAt: NOW, affectedNow: 3, resetsBelow: 2 },
      ],
    }),
    relayed({ delayMs: 60_000 }),
    relayed({ delayMs: 60_000, delayCause: 'a webhook refuses it', delayed: 8 }),
    relayed({ failed: 1 }),
    relayed({ failed: 2, stuck: 1 }),
    relayed({ stuck: 2, stop: aStop }),
    relayed({ stop: { ...aStop, scope: 'fleet' }, ownStop: { ...aStop, id: 's1' }, mode: 'observe' }),
    { stop: { ...aStop, scope: 'fleet', resumed: [cluster] }, ...relayed({}) },
    { stop: { ...aStop, scope: 'fleet' }, deadLetters: { one: 1, two: 2 } },
    { backlog: { one: 1_000, two: 1_001 } },
  ];
  const sentences = states
    .flatMap((state) => issuesOf({ at: NOW, clusters: [], ...state }))
    .map(
      ({ type, severity, message, remediation }) =>
        `${type} (${severity}): ${message}\n  ${remediation ?? '-'}\n`,
    );
  // Each condition holds in one of these states.
  for (const type of Object.keys(CONDITIONS))
    assert.ok(
      sentences.some((text) => text.startsWith(`${type} (`)),
      type,
    );
  t.assert.fileSnapshot(sentences.join(''), join(import.meta.dirname, 'conditions.txt'), {
    serializers: [String],
  });
});

test('rings, if it is a critical fault', () => {
  const rules = alertRules();
  const silent = FAULT_TYPES.filter((type) => {
    const { severity, runbook } = CONDITIONS[type];
    const rings = ({ expr, annotations }: (typeof rules)[number]) =>
      annotations.summary === runbook || expr.includes(type);
    return severity === 'critical' && !rules.some(rings);
  });
  assert.deepEqual(silent, []);
});
