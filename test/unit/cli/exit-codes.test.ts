import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type CliDeps, CliError } from '#functions/cli/command.ts';
import { run } from '#functions/cli/run.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { FleetError } from '#shared/operations/fleet/fleet.ts';
import { StoreError } from '#shared/state/store.ts';
import { VERSION } from '#shared/version.ts';
import { controllerManager, SHOWN_SKEW_MS, shownCluster } from '#test/world/shown-cluster.ts';
import { commandLine, NOW } from './command-line.ts';
import { plainOutput } from './plain-output.ts';

/** What is the case, beside a fleet in order. */
interface Case {
  /** An action is required, but changes of the clusters are noticed. */
  readonly stopped?: true;
  /** The process is gone: an action is required, and changes go unnoticed. */
  readonly down?: true;
  /** A fact cannot be read. */
  readonly unknown?: true;
  /** Nobody specified the fleet, and its process is gone. */
  readonly abandoned?: true;
  /** The clusters cannot be reached. */
  readonly unreachable?: true;
  /** The clock of the clusters differs from this machine's. */
  readonly skewed?: true;
  /** A pod that no controller creates again is on the node. */
  readonly bare?: true;
  /** The result cannot be written. */
  readonly full?: true;
}

async function codeOf(t: TestContext, command: string, given: Case): Promise<number> {
  const skewMs = given.skewed ? SHOWN_SKEW_MS : 0;
  const pod = {
    metadata: { name: 'p', namespace: 'd', uid: 'p', creationTimestamp: '2026-11-21T00:00:00Z' },
    spec: { nodeName: 'n' },
  };
  const shown = {
    ...controllerManager('off'),
    '/api/v1/nodes': [{ metadata: { name: 'n', uid: 'n' }, spec: {}, status: {} }],
    '/api/v1/pods': given.bare ? [pod] : [],
  };
  const { fleet, rulesStore, leases, clock } = commandLine(t, {
    ...(given.abandoned ? { isAbandoned: true } : {}),
    service: async () =>
      given.down || given.abandoned
        ? undefined
        : { version: VERSION, startedAt: NOW, queues: {}, clusters: {} },
    cluster: async () => {
      if (given.unreachable) throw new FleetError('it is away');
      const live = shownCluster(shown, NOW);
      return { ...live, api: Object.assign(live.api, { skewMs }) };
    },
  });
  const operator = await fleet.operator();
  for (const cluster of await fleet.clusters()) {
    const lease = await leases.take(cluster, undefined, 'relay-1', NOW);
    assert.ok(lease);
    await leases.renew(lease, { renewedAt: NOW, lastContactAt: NOW, faults: [] });
    await perform({ kind: 'apply-policy', cluster, text: 'mode: enforce' }, operator);
    if (given.stopped) await perform({ kind: 'stop', cluster, reason: 'a drill' }, operator);
  }
  if (given.unknown)
    t.mock.method(rulesStore, 'fleetStop', async () => {
      throw new StoreError('it cannot be read');
    });
  let progress: string | undefined;
  const atOutput = new Set<string | undefined>();
  const deps: Omit<CliDeps, 'exitWith' | 'connect'> = {
    fleet: async () => fleet,
    live: async () => fleet,
    clock,
    ...plainOutput().deps,
    print: () => void atOutput.add(progress),
    complain: () => void atOutput.add(progress),
    progress: (text) => {
      progress = text;
    },
    ...(given.full
      ? {
          print: () => {
            throw new CliError('The disk is full.');
          },
        }
      : {}),
  };
  const code = await run(command.split(' '), deps as CliDeps);
  atOutput.add(progress);
  assert.deepEqual([...atOutput], [undefined], 'the progress line is cleared');
  return code;
}

const WHAT_IF = 'what-if prod --taint a:NoExecute --nodes n';

const CASES: readonly (readonly [command: string, is: Case, code: number])[] = [
  ['status', {}, 0],
  ['status', { stopped: true }, 2],
  ['status', { unknown: true }, 69],
  ['status', { stopped: true, unknown: true }, 2],
  ['status', { down: true, unknown: true }, 2],
  ['status', { abandoned: true, stopped: true, unknown: true }, 69],
  ['status other', { stopped: true }, 1],
  ['status', { stopped: true, full: true }, 1],
  ['pending', {}, 0],
  ['pending', { stopped: true }, 0],
  ['pending', { down: true }, 69],
  ['pending', { unknown: true }, 69],
  ['pending', { stopped: true, unknown: true }, 69],
  ['pending', { unknown: true, full: true }, 1],
  ['pending --nothing', { down: true }, 64],
  ['explain pod d/p --cluster prod', {}, 0],
  ['explain pod d/p --cluster prod', { down: true }, 69],
  ['doctor', {}, 0],
  ['doctor', { skewed: true }, 0],
  ['doctor', { skewed: true, unreachable: true }, 2],
  ['doctor', { abandoned: true, unreachable: true }, 69],
  [WHAT_IF, {}, 0],
  [WHAT_IF, { bare: true }, 2],
  [WHAT_IF, { bare: true, full: true }, 1],
  [WHAT_IF, { bare: true, abandoned: true }, 69],
  ['dead-letters redrive --all', {}, 0],
  ['dead-letters redrive --all', { full: true }, 1],
  ['history', { stopped: true, down: true }, 0],
  ['history', { abandoned: true }, 69],
  ['stop prod --reason x', { abandoned: true }, 0],
  ['stop --reason x', { abandoned: true }, 64],
  ['stop other --reason x', { abandoned: true, stopped: true }, 1],
];

for (const [command, given, code] of CASES) {
  test(`${command} exits with ${code} if ${Object.keys(given).join(' and ') || 'all is in order'}`, async (t) => {
    assert.equal(await codeOf(t, command, given), code);
  });
}
