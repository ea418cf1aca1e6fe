import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { Registry } from 'prom-client';
import { CONDITIONS, type Issue } from '#shared/conditions/conditions.ts';
import { type ClusterState, startProbeServer } from '#shared/engine/clusters/probe-server.ts';
import { reportOf } from '#shared/eviction/guard.ts';
import { clusterName, podUid } from '#shared/eviction/identity.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import type { ServiceClusterView } from '#shared/operations/fleet/service-view.ts';
import type { Finding } from '#shared/operations/look/finding.ts';
import type { FleetStatus } from '#shared/operations/look/status.ts';
import { FAULT_TYPES, type Fault } from '#shared/state/fault.ts';
import { VERSION } from '#shared/version.ts';
import { aNode, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { commandLine } from '#test/unit/cli/command-line.ts';
import { servedConsole } from './served-console.ts';

const PROD = clusterName('prod');

const faults: fc.Arbitrary<readonly Fault[]> = fc.uniqueArray(
  fc.record({
    type: fc.constantFrom(...FAULT_TYPES),
    since: fc.constant(NOW - 1_000),
    error: fc.constant('It fails'),
  }),
  { maxLength: 3, selector: ({ type }) => type },
);

const trips = fc.subarray<Trip>([
  { scope: 'cluster', trippedAt: NOW, nodes: 6, outOf: 10 },
  { scope: 'customTaints', trippedAt: NOW, nodes: 6, outOf: 10 },
]);

const anyFacts = fc.record({
  /** The process that answers is also the relay of the cluster. */
  isOneProcess: fc.boolean(),
  process: fc.constantFrom('responding', 'silent', 'none', 'deployed'),
  view: fc.constantFrom<ServiceClusterView['state']>(
    'live',
    'syncing',
    'disconnected',
    'standby',
    'access-denied',
  ),
  lease: fc.option(
    fc.record({
      renewedAgoMs: fc.constantFrom(0, 5_000, 60_000),
      contactAgoMs: fc.option(fc.constantFrom(0, 100_000, 130_000)),
      reports: fc.boolean(),
    }),
  ),
  breakerOpen: fc.boolean(),
  isReadable: fc.oneof({ arbitrary: fc.constant(true), weight: 5 }, fc.constant(false)),
  faults,
  trips,
  pods: fc.record({ failed: fc.nat(2), late: fc.nat(2), stuck: fc.nat(2) }),
  stops: fc.subarray(['cluster', 'fleet'] as const),
  deadLetters: fc.nat(1),
  backlog: fc.constantFrom(0, 2_000, undefined),
});

const facts = anyFacts.map((given): typeof given => {
  if (!given.isOneProcess) return given;
  const contactAgoMs = given.view === 'disconnected' ? 130_000 : 0;
  return { ...given, process: 'responding', lease: { renewedAgoMs: 0, contactAgoMs, reports: true } };
});

type Facts = typeof facts extends fc.Arbitrary<infer T> ? T : never;

/** The checks of `doctor` that conditions name. */
const CHECKS: ReadonlySet<string> = new Set(Object.values(CONDITIONS).map(({ check }) => check));

test('a condition that one surface shows is on all of them, in the same words', async (t) => {
  await fc.assert(
    fc.asyncProperty(facts, async (given) => {
      const seen = await shown(t, given);
      const { issues, unknown }: FleetStatus = seen.status;
      assert.deepEqual(wordsOf(seen.page.issues), wordsOf(issues), 'the console');
      assert.deepEqual(seen.page.unknown, unknown, 'what the console does not know');

      const lines = issues.map(({ cluster, message }) => `  ! ${cluster ? `${cluster}: ` : ''}${message}`);
      for (const line of lines) assert.ok(seen.text.includes(line), line);
      assert.equal(seen.text.includes('No action required.'), issues.length + unknown.length === 0);
      for (const sentence of unknown) assert.ok(seen.text.includes(sentence), sentence);
      assert.equal(seen.statusCode, issues.length > 0 ? 2 : unknown.length > 0 ? 69 : 0);

      const found = seen.doctor.filter(({ check }) => CHECKS.has(check));
      const bad = found.filter(({ verdict }) => verdict === 'bad');
      assert.deepEqual(bad.map(inDoctor).sort(), issues.map(inDoctor).sort(), 'doctor');
      const fine = found
        .filter(({ verdict }) => verdict === 'ok')
        .map(({ cluster, check }) => [cluster, check]);
      for (const { type, cluster } of issues)
        assert.ok(!fine.some((each) => isDeepStrictEqual(each, [cluster, CONDITIONS[type].check])), type);
      for (const sentence of unknown)
        assert.ok(
          found.some(({ verdict, message }) => verdict === 'warn' && message.includes(sentence)),
          sentence,
        );

      if (!given.isReadable || !given.isOneProcess || given.view === 'standby') return;
      const ofRelay = issues.filter(({ type }) => ['guard', 'relay'].includes(CONDITIONS[type].check));
      const failed = [...seen.ready.matchAll(/^\[-\]prod\/((?!syncing)\S+) failed/gm)].map(
        ([, type]) => type,
      );
      assert.deepEqual(failed.sort(), ofRelay.map(({ type }) => type).sort(), '/readyz');
    }),
    { numRuns: 60 },
  );
});

const inDoctor = ({ cluster, message, remediation }: Pick<Issue, 'cluster' | 'message' | 'remediation'>) =>
  JSON.stringify([cluster, message, remediation]);

const wordsOf = (issues: readonly Issue[]) =>
  issues.map(({ type, severity, cluster, message, remediation }) => ({
    type,
    severity,
    cluster,
    message,
    remediation,
  }));

/** Brings the facts about, and returns what each surface shows. */
async function shown(t: Parameters<typeof commandLine>[0], given: Facts) {
  const { process, view, lease, breakerOpen, pods, stops, deadLetters, backlog } = given;
  const cluster: ServiceClusterView = {
    state: view,
    breakerOpen,
    faults: given.faults,
    nodes: 3,
    tainted: 1,
    pods: 1,
    down: 0,
    customTaints: 0,
    ...(view === 'disconnected' ? { since: NOW - 130_000 } : {}),
    ...(lease?.contactAgoMs == null ? {} : { lastContactAt: NOW - lease.contactAgoMs }),
  };
  const parts: Partial<Fleet> = {
    kind: process === 'deployed' ? 'deployed' : 'local',
    service: async () => {
      if (process === 'silent') throw new FleetError('It does not respond.');
      if (process !== 'responding') return undefined;
      return { version: VERSION, startedAt: NOW, queues: {}, clusters: { prod: cluster } };
    },
    backlog: async () => {
      // One process reports its queues itself.
      if (process !== 'deployed') await parts.service?.();
      return process === 'none' || backlog === undefined ? undefined : new Map([['evictions', backlog]]);
    },
  };
  const served = await servedConsole(t, { clusters: ['prod'], parts });
  const { store, leases, rulesStore, fleet, letters } = served;
  const due = NOW - 120_000;
  const schedule = [
    ...Array.from({ length: pods.failed }, (_, index) =>
      aRecord({ name: `failed-${index}`, dueAt: due, gaveUpAt: NOW }),
    ),
    ...Array.from({ length: pods.late }, (_, index) => aRecord({ name: `late-${index}`, dueAt: due })),
  ].map((record) => ({ ...record, uid: podUid(record.name) }));
  await store.commit(aRef(PROD), 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  if (lease) {
    const renewedAt =
      NOW - (process === 'deployed' ? Math.min(lease.renewedAgoMs, 5_000) : lease.renewedAgoMs);
    const taken =
      (await leases.take(PROD, undefined, 'relay-1', renewedAt)) ?? assert.fail('there is no lease');
    const contact = lease.contactAgoMs === null ? {} : { lastContactAt: NOW - lease.contactAgoMs };
    const report = lease.reports ? { faults: given.faults, breakerOpen } : {};
    await leases.renew(taken, { renewedAt, nodes: 3, ...contact, ...report });
    const stuck = Array.from({ length: pods.stuck }, (_, index) => ({
      node: aRef(PROD).node,
      uid: podUid(`s${index}`),
      namespace: 'default',
      name: `s${index}`,
      gracePeriodEndedAt: due,
      finalizers: [],
      nodeState: 'there' as const,
    }));
    await leases.reportStuck(taken, stuck);
  }
  const operator = await fleet.operator();
  await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce' }, operator);
  if (stops.includes('cluster')) await perform({ kind: 'stop', cluster: PROD, reason: 'a test' }, operator);
  if (stops.includes('fleet')) await perform({ kind: 'stop', reason: 'a test' }, operator);
  await rulesStore.changeGuard(PROD, (await rulesStore.read(PROD)).guard, given.trips);
  if (deadLetters > 0) letters.add('evictions-due', { body: '{}' }, 'nobody can read it');
  const unread = async () => assert.fail('The disk fails.');
  if (!given.isReadable) Object.assign(fleet, { leases: Object.create(leases, { read: { value: unread } }) });
  const { run, state } = commandLine(t, fleet);
  const status = JSON.parse(await run('status', '-o', 'json'));
  const statusCode = state.exitCode;
  const text = await run('status');
  const doctor: readonly Finding[] = JSON.parse(await run('doctor', '-o', 'json'));
  const { ask } = await served.enter();
  const page = await ask('GET api/status', {});
  const probed: ClusterState =
    view === 'disconnected'
      ? { kind: view, since: NOW - 130_000 }
      : view === 'live' && breakerOpen
        ? { kind: view, breakerOpen }
        : { kind: view };
  const probes = await startProbeServer(
    { host: '127.0.0.1', port: 0, setBy: { host: '', port: '' } },
    {
      registry: new Registry(),
      states: () => new Map([[PROD, probed]]),
      trips: () => new Map([[PROD, given.trips.map((trip) => reportOf(trip))]]),
      faults: () => new Map([[PROD, given.faults]]),
      log: recordingLog(),
    },
  );
  const ready = await (await fetch(`http://127.0.0.1:${probes.port}/readyz?verbose`)).text();
  await probes.close();
  return { status, statusCode, text, doctor, page, ready };
}
