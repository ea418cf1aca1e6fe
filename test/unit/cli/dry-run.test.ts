import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import { createProgram } from '#functions/cli/program.ts';
import { parseDueMessage } from '#shared/aws/due-message.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import type { RulesAct } from '#shared/operations/acts/act.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { type PendingEviction, pendingEvictions } from '#shared/operations/look/pending.ts';
import { aNode, aReason, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { leavesOf } from '../../../docs/generator/cli-page.ts';
import { commandLine, NOW } from './command-line.ts';

const prod = clusterName('prod');

/** Commands that change no evictions. Every other command has `--dry-run`. */
const READING: readonly string[] = [
  ...['status', 'pending', 'explain pod', 'explain workload', 'explain node', 'history', 'what-if', 'doctor'],
  ...['holds', 'audit', 'console', 'completion'],
  ...['clusters list', 'clusters show', 'dead-letters list'],
  ...['policy get', 'policy diff', 'policy validate', 'policy schema'],
  ...['takeover manifest', 'takeover status'],
  ...['clusters add', 'clusters remove', 'dead-letters redrive'],
  // A preview unless --apply is given.
  'tolerations',
];

const program = createProgram({} as CliDeps);
const commands = leavesOf(program, program.createHelp());

function nameOf(command: Command): string {
  const { parent } = command;
  return parent?.parent ? `${nameOf(parent)} ${command.name()}` : command.name();
}

describe('--dry-run', () => {
  const hasOption = (command: Command, long: string) => command.options.some((each) => each.long === long);

  test('is an option of every command that changes evictions, with an output format', () => {
    const acting = commands.filter((command) => !READING.includes(nameOf(command)));
    assert.notEqual(acting.length, 0);
    for (const command of acting) {
      const name = nameOf(command);
      assert.ok(
        hasOption(command, '--dry-run'),
        `${name} has no --dry-run: add the option, or, if it changes no evictions, add '${name}' to READING`,
      );
      assert.ok(hasOption(command, '--output'), `${name} has --dry-run: add --output for its preview`);
    }
  });

  test('is no option of any other command', () => {
    const reading = commands.filter((command) => READING.includes(nameOf(command)));
    const unknown = READING.filter((name) => !reading.map(nameOf).includes(name));
    assert.deepEqual(unknown, [], `there is no command ${unknown.join(', ')}: remove it from READING`);
    for (const command of reading)
      assert.ok(
        !hasOption(command, '--dry-run'),
        `${nameOf(command)} has --dry-run: remove it from READING, or remove the option`,
      );
  });

  test('is required by an output format, before anything is done', async (t) => {
    const { run, rulesStore } = commandLine(t);
    await assert.rejects(run('stop', '--all', '-o', 'json'), {
      name: 'UsageError',
      message: '--output applies only to --dry-run. Remove it, or specify --dry-run.',
    });
    assert.equal(await rulesStore.fleetStop(), undefined);
  });
});

const TRIP = { scope: 'cluster', trippedAt: NOW, nodes: 6, outOf: 10 } as const;

/** The command line on an enforced cluster with three due pods, one of them failed, and two that are due later. */
async function enforced(t: TestContext, records: Partial<EvictionRecord> = {}) {
  const bench = commandLine(t);
  const { fleet, rulesStore, store, letters, state } = bench;
  const operator = await fleet.operator();
  await perform({ kind: 'apply-policy', cluster: prod, text: 'mode: enforce\nreleaseRate: 5\n' }, operator);
  const schedule = [
    aRecord({ name: 'due-0', dueAt: NOW, ...records }),
    aRecord({ name: 'due-1', dueAt: NOW, ...records }),
    aRecord({ name: 'lost', dueAt: NOW, gaveUpAt: NOW }),
    aRecord({ name: 'later-0', ...records }),
    aRecord({ name: 'later-1', ...records }),
  ];
  await store.commit(aRef(prod), 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  const dir = mkdtempSync(join(tmpdir(), 'policy-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'policy.yaml');
  /** Everything that a command could have changed. */
  const everything = async () => ({
    rules: [...(await rulesStore.readAll([prod, clusterName('stage')]))],
    fleetStop: await rulesStore.fleetStop(),
    audit: await rulesStore.audit({ from: 0, to: NOW * 2 }),
    sent: [...state.sent],
    letters: await letters.list(100),
    redriven: letters.takeRedriven(),
  });
  const dryRun = async (...args: readonly string[]) => {
    const before = await everything();
    const text = await bench.run(...args, '--dry-run');
    const [preview, ...more] = JSON.parse(await bench.run(...args, '--dry-run', '-o', 'json'));
    assert.deepEqual(await everything(), before);
    assert.deepEqual(bench.questions, []);
    assert.equal(state.exitCode, 0);
    assert.deepEqual(more, []);
    return { text, preview };
  };
  return { ...bench, operator, dryRun, file, pending: () => pendingEvictions(fleet, prod, NOW) };
}

type Bench = Awaited<ReturnType<typeof enforced>>;

/** The change of pending evictions that an act caused. */
function caused(before: readonly PendingEviction[], after: readonly PendingEviction[]) {
  const isLive = ({ record }: PendingEviction) => record.gaveUpAt === undefined;
  const wasHeld = new Set(before.filter(({ gates }) => gates.length > 0).map(({ record }) => record.uid));
  const freed = after.filter(
    (each) => isLive(each) && each.gates.length === 0 && wasHeld.has(each.record.uid),
  );
  const now = freed.filter(({ record }) => record.dueAt <= NOW).length;
  const held = after.filter((each) => isLive(each) && each.gates.length > 0).length;
  return { evictedNow: now, evictedWhenDue: freed.length - now, held };
}

const WHY = ['--reason', 'an incident'] as const;

interface Case {
  readonly name: string;
  readonly before?: (bench: Bench) => Promise<unknown>;
  readonly args: readonly string[] | ((bench: Bench) => Promise<readonly string[]>);
  readonly records?: Partial<EvictionRecord>;
  readonly pods: { readonly evictedNow: number; readonly evictedWhenDue: number; readonly held: number };
  readonly text: RegExp;
}

/** Holds a pod that is due. */
const HOLD_DUE_0: RulesAct<'hold'> = {
  kind: 'hold',
  cluster: prod,
  target: { kind: 'pod', namespace: 'default', name: 'due-0' },
  reason: 'x',
};

const CASES: readonly Case[] = [
  {
    name: 'stop',
    args: ['stop', 'prod'],
    pods: { evictedNow: 0, evictedWhenDue: 0, held: 4 },
    text: /^Dry run: nothing was changed\. Without --dry-run:\nEvictions are stopped in cluster prod\.\n4 pending evictions are held by it, 2 of them due now\.\n$/,
  },
  {
    name: 'stop --all',
    args: ['stop', '--all', '--for', '2h'],
    pods: { evictedNow: 0, evictedWhenDue: 0, held: 4 },
    text: /\nEvictions are stopped in all clusters until 2026-11-21T14:00:00Z\.\n4 pending/,
  },
  {
    name: 'pause',
    args: ['pause', 'prod', ...WHY],
    pods: { evictedNow: 0, evictedWhenDue: 0, held: 4 },
    text: /\nEvictions are stopped in cluster prod\.\n4 pending/,
  },
  {
    name: 'resume of a stop',
    before: ({ operator }) => perform({ kind: 'stop', cluster: prod, reason: 'x' }, operator),
    args: ['resume', 'prod', ...WHY],
    pods: { evictedNow: 2, evictedWhenDue: 2, held: 0 },
    text: /\nEvictions are resumed in cluster prod\.\n2 pods are due and will be evicted, at 5 per second\.\n2 more will be evicted at their deadlines\.\nNODE +NAMESPACE +PODS\nnode-1 +default +2\n$/,
  },
  {
    name: 'resume --all',
    before: ({ operator }) => perform({ kind: 'stop', reason: 'x' }, operator),
    args: ['resume', '--all', ...WHY],
    pods: { evictedNow: 2, evictedWhenDue: 2, held: 0 },
    text: /\nEvictions are resumed in all clusters\.\n2 pods are due and will be evicted\.\n/,
  },
  {
    name: 'hold pod',
    args: ['hold', 'pod', 'default/due-0', '--cluster', 'prod', ...WHY, '--yes'],
    pods: { evictedNow: 0, evictedWhenDue: 0, held: 1 },
    text: /\nPod default\/due-0 in cluster prod is held\.\n1 pending eviction is held by it, due now\.\n$/,
  },
  {
    name: 'hold workload',
    args: ['hold', 'workload', 'default/Deployment/web', '--cluster', 'prod', ...WHY, '--yes'],
    pods: { evictedNow: 0, evictedWhenDue: 0, held: 0 },
    text: /\nNo pending evictions are held by it\.\n$/,
  },
  {
    name: 'hold node, while the guard holds its pods',
    records: { causes: [aReason('node.kubernetes.io/unreachable')] },
    before: async ({ rulesStore }) =>
      rulesStore.changeGuard(prod, (await rulesStore.read(prod)).guard, [TRIP]),
    args: ['hold', 'node', 'node-1', '--cluster', 'prod', ...WHY, '--yes'],
    pods: { evictedNow: 0, evictedWhenDue: 0, held: 4 },
    text: /\n4 pending evictions match, and are held already\.\n4 pods remain held: by the guard\.\n$/,
  },
  {
    name: 'hold namespace',
    args: ['hold', 'namespace', 'default', '--cluster', 'prod', ...WHY, '--yes'],
    pods: { evictedNow: 0, evictedWhenDue: 0, held: 4 },
    text: /\nNamespace default in cluster prod is held\.\n4 pending evictions are held by it, 2 of them due now\.\n$/,
  },
  {
    name: 'hold labels',
    args: ['hold', 'labels', 'app', '--cluster', 'prod', ...WHY, '--yes'],
    pods: { evictedNow: 0, evictedWhenDue: 0, held: 0 },
    text: /\nPods with labels app in cluster prod are held\.\nLabels of pods and zones of nodes are not known here: [^\n]+\n$/,
  },
  {
    name: 'hold node',
    args: ['hold', 'node', 'node-1', '--cluster', 'prod', ...WHY, '--yes'],
    pods: { evictedNow: 0, evictedWhenDue: 0, held: 4 },
    text: /\nNode node-1 in cluster prod is held/,
  },
  {
    name: 'release of a hold, while another act holds the pods',
    before: async ({ operator }) => {
      await perform(
        { kind: 'hold', cluster: prod, target: { kind: 'node', node: nodeName('node-1') }, reason: 'x' },
        operator,
      );
      await perform(HOLD_DUE_0, operator);
    },
    args: async ({ rulesStore }) => {
      const [hold] = (await rulesStore.read(prod)).orders.holds;
      return ['release', hold?.id ?? '', ...WHY];
    },
    pods: { evictedNow: 1, evictedWhenDue: 2, held: 1 },
    text: /\nHold h\w{8} is released: node node-1 in cluster prod\.\n1 pod is due and will be evicted, at 5 per second\.\n2 more will be evicted at their deadlines\.\n1 pod remains held: on hold\.\n/,
  },
  {
    name: 'release guard',
    records: { causes: [aReason('node.kubernetes.io/unreachable')] },
    before: async ({ rulesStore }) =>
      rulesStore.changeGuard(prod, (await rulesStore.read(prod)).guard, [TRIP]),
    args: ['release', 'guard', 'prod', ...WHY],
    pods: { evictedNow: 2, evictedWhenDue: 2, held: 0 },
    text: /\nThe guard of cluster prod is released for cluster\. Held evictions continue at the release rate of its policy\.\n2 pods are due and will be evicted, at 5 per second\.\n2 more will be evicted at their deadlines\.\n/,
  },
];

describe('a dry run predicts the act, and changes nothing:', () => {
  for (const { name, before = async () => undefined, args, records, pods, text } of CASES) {
    test(name, async (t) => {
      const bench = await enforced(t, records);
      await before(bench);
      const words = typeof args === 'function' ? await args(bench) : args;
      const shown = await bench.dryRun(...words);
      assert.match(shown.text, text);
      assert.deepEqual(shown.preview.pods, pods);
      const pending = await bench.pending();
      await bench.run(...words);
      assert.deepEqual(caused(pending, await bench.pending()), pods);
    });
  }

  test('retry', async (t) => {
    const { dryRun, run, state } = await enforced(t);
    const { text, preview } = await dryRun('retry', 'prod');
    assert.match(text, /\n1 failed eviction is retried in cluster prod\.\nNODE +NAMESPACE +PODS\n/);
    assert.deepEqual(preview.pods, { evictedNow: 1, evictedWhenDue: 0, held: 0 });
    await run('retry', 'prod');
    const messages = state.sent.map(parseDueMessage);
    assert.deepEqual(
      messages.map((message) => message.kind === 'retry' && message.pods.length),
      [1],
    );
  });

  test('policy apply, with settings and evictions', async (t) => {
    const { dryRun, run, file, pending } = await enforced(t);
    writeFileSync(file, 'mode: enforce\nexclude: [{ namespaces: [default] }]\n');
    const apply = ['policy', 'apply', 'prod', '-f', file];
    const { text, preview } = await dryRun(...apply);
    assert.match(
      text,
      /\nThe policy is applied to cluster prod\.\n4 pending evictions are held by it, 2 of them due now\.\nSETTING +CURRENT +NEW\n/,
    );
    const pods = { evictedNow: 0, evictedWhenDue: 0, held: 4 };
    assert.deepEqual(preview, {
      cluster: 'prod',
      change: 'The policy is applied to cluster prod.',
      effects: ['4 pending evictions are held by it, 2 of them due now.'],
      pods,
      settings: [
        { setting: 'releaseRate', now: '5', next: '50' },
        { setting: 'exclude', now: '-', next: '[{"namespaces":["default"]}]' },
      ],
    });
    const before = await pending();
    await run(...apply, '--yes');
    assert.deepEqual(caused(before, await pending()), pods);
    const unchanged = await dryRun(...apply);
    assert.match(unchanged.text, /\nCluster prod already has this policy\.\n/);
    writeFileSync(file, 'mode: enforce\nmethod: evict\n');
    const back = await dryRun(...apply);
    assert.deepEqual(back.preview.pods, { evictedNow: 2, evictedWhenDue: 2, held: 0 });
    assert.match(back.text, /requires the permission to create pods\/eviction/);
  });

  test('policy apply, which keeps pods that a relay found held until a setting about them changes', async (t) => {
    const gate = {
      ...({ kind: 'node-alive', renewedAt: NOW, until: NOW + 60_000 } as const),
      revision: 1,
      guardRevision: 0,
    };
    const { dryRun, file } = await enforced(t, { held: { by: gate, since: NOW } });
    writeFileSync(file, 'mode: enforce\nevictionRate: 5\n');
    const other = await dryRun('policy', 'apply', 'prod', '-f', file);
    assert.deepEqual(other.preview.pods, { evictedNow: 0, evictedWhenDue: 0, held: 4 });
    writeFileSync(file, 'mode: enforce\nrequireExpiredLease: false\n');
    const its = await dryRun('policy', 'apply', 'prod', '-f', file);
    assert.deepEqual(its.preview.pods, { evictedNow: 2, evictedWhenDue: 2, held: 0 });
  });

  test('policy apply, with what it cannot count', async (t) => {
    const { dryRun, file } = await enforced(t);
    writeFileSync(
      file,
      'mode: enforce\ntreatAsNoExecute: [maintenance]\nexclude: [{ labels: { matchLabels: { app: web } } }]\n',
    );
    const { preview } = await dryRun('policy', 'apply', 'prod', '-f', file);
    assert.deepEqual(preview.effects, [
      'Evictions that treatAsNoExecute would add, cancel, or move are not counted.',
      'Labels, annotations, and priority classes of pods are not known here: pods that exclude or include would keep by them are counted as evicted.',
    ]);
  });

  test('policy apply, which asks nothing before it would evict observed pods', async (t) => {
    const { dryRun, file, operator } = await enforced(t, { held: { by: { kind: 'observe' }, since: NOW } });
    await perform({ kind: 'apply-policy', cluster: prod, text: 'mode: observe\n' }, operator);
    writeFileSync(file, 'mode: enforce\n');
    const { preview } = await dryRun('policy', 'apply', 'prod', '-f', file);
    assert.deepEqual(preview.pods, { evictedNow: 2, evictedWhenDue: 2, held: 0 });
  });

  describe('policy apply, while the guard is tripped:', () => {
    const limits =
      'Affected nodes are not known here: evictions are not counted that the guard holds under its new limits, or releases after five minutes below half of them.';
    const freed = [
      '2 pods are due and will be evicted, at 5 per second.',
      '2 more will be evicted at their deadlines.',
    ];
    const stay = '4 pods remain held: by the guard.';
    const rows: readonly (readonly [guard: string, effects: readonly string[]])[] = [
      ['off', freed],
      ['{ cluster: off }', freed],
      ['{ dryRun: true }', freed],
      ['{ zone: off }', ['No pending evictions are held or released by it.', stay]],
      ['{ cluster: { percent: 90 } }', [stay, limits]],
    ];
    for (const [guard, effects] of rows) {
      test(`guard: ${guard}`, async (t) => {
        const { dryRun, file, rulesStore, run } = await enforced(t);
        await rulesStore.changeGuard(prod, (await rulesStore.read(prod)).guard, [TRIP]);
        writeFileSync(file, `mode: enforce\nreleaseRate: 5\nguard: ${guard}\n`);
        const { preview } = await dryRun('policy', 'apply', 'prod', '-f', file);
        assert.deepEqual(preview.effects, effects);
        await assert.rejects(run('policy', 'apply', 'prod', '-f', file), /rerun with --yes/);
      });
    }

    test('counts no pods that a trip of another scope holds', async (t) => {
      const revisions = { revision: 1, guardRevision: 1 };
      const zone = { scope: 'zone', zone: 'z1', trippedAt: NOW } as const;
      const held = { by: { kind: 'guard', ...zone, ...revisions }, since: NOW } as const;
      const { dryRun, rulesStore } = await enforced(t, { held });
      const trips = [
        { ...TRIP, scope: 'customTaints' },
        { ...TRIP, ...zone },
      ] as const;
      await rulesStore.changeGuard(prod, (await rulesStore.read(prod)).guard, trips);
      const { preview } = await dryRun('release', 'guard', 'prod', '--scope', 'customTaints', ...WHY);
      assert.deepEqual(preview.effects, ['No evictions were held by it.']);
    });

    test('counts pods that another act holds, and names a zone whose trip ends', async (t) => {
      const { dryRun, file, rulesStore, operator } = await enforced(t);
      const zone = { ...TRIP, scope: 'zone', zone: 'z1' } as const;
      await rulesStore.changeGuard(prod, (await rulesStore.read(prod)).guard, [TRIP, zone]);
      await perform(HOLD_DUE_0, operator);
      writeFileSync(file, 'mode: enforce\nguard: off\nreleaseRate: 5\nevictionRate: 2\n');
      const zoneAlone = await dryRun('release', 'guard', 'prod', '--scope', 'zone/z1', ...WHY);
      assert.deepEqual(zoneAlone.preview.effects, ['No evictions were held by it.']);
      const { preview } = await dryRun('policy', 'apply', 'prod', '-f', file);
      assert.deepEqual(preview.effects, [
        '1 pod is due and will be evicted, at 2 per second.',
        '2 more will be evicted at their deadlines.',
        '1 pod remains held: on hold.',
        'Pods on nodes of zone z1 that become due later are evicted, too.',
      ]);
    });
  });

  for (const [before, after, isNamed] of [
    ['enforce', 'enforce', true],
    ['observe', 'enforce', true],
    ['enforce', 'observe', false],
  ] as const)
    test(`policy apply, ending a trip of a zone, from ${before} to ${after} mode`, async (t) => {
      const { dryRun, file, rulesStore, operator } = await enforced(t);
      await perform({ kind: 'apply-policy', cluster: prod, text: `mode: ${before}\n` }, operator);
      const { guard } = await rulesStore.read(prod);
      await rulesStore.changeGuard(prod, guard, [{ ...TRIP, scope: 'zone', zone: 'z1' }]);
      writeFileSync(file, `mode: ${after}\nguard: off\n`);
      const { preview } = await dryRun('policy', 'apply', 'prod', '-f', file);
      const named = preview.effects.filter((text: string) => text.includes('zone z1'));
      assert.equal(named.length === 1, isNamed);
    });

  test('policy apply, with due pods that it hastens', async (t) => {
    const { dryRun, file, operator } = await enforced(t);
    await perform(
      { kind: 'apply-policy', cluster: prod, text: 'mode: enforce\nevictionRate: 1\n' },
      operator,
    );
    writeFileSync(file, 'mode: enforce\nevictionRate: 5\n');
    const { preview } = await dryRun('policy', 'apply', 'prod', '-f', file);
    assert.deepEqual(preview.effects, ['2 due pods may be evicted sooner.']);
  });
});

describe('a dry run rejects like the act:', () => {
  const rows: readonly (readonly [args: readonly string[], error: RegExp])[] = [
    [['resume', 'prod', ...WHY], /Cluster prod is not stopped\. Nothing to resume\./],
    [['resume', '--all', ...WHY], /No stop of all clusters is in force/],
    [['pause', 'stage', ...WHY], /Cluster stage is in observe mode/],
    [['release', 'h0', ...WHY], /Hold "h0" not found/],
    [['release', 'guard', 'prod', ...WHY], /The guard of cluster prod is not tripped/],
    [['stop', 'prod', '--reason', ''], /--reason must not be empty/],
    [['hold', 'pod', 'default/web', ...WHY], /Missing cluster name/],
  ];
  for (const [args, message] of rows) {
    test(args.join(' '), async (t) => {
      const { run } = await enforced(t);
      await assert.rejects(run(...args, '--dry-run'), { message });
      await assert.rejects(run(...args), { message });
    });
  }

  test('resume under a stop of all clusters', async (t) => {
    const { run, operator, rulesStore } = await enforced(t);
    await perform({ kind: 'stop', reason: 'x' }, operator);
    await perform({ kind: 'stop', cluster: prod, reason: 'x' }, operator);
    const [preview] = JSON.parse(await run('resume', 'prod', ...WHY, '--dry-run', '-o', 'json'));
    assert.equal(preview.pods.evictedNow, 0);
    assert.equal((await rulesStore.read(prod)).orders.stops.length, 1);
  });
});

test('prints a preview for each cluster of a dry run', async (t) => {
  const { run } = await enforced(t);
  const previews = JSON.parse(await run('stop', 'prod', 'stage', '--dry-run', '-o', 'json'));
  assert.deepEqual(
    previews.map(({ cluster, pods }: { cluster: string; pods: { held: number } }) => [cluster, pods.held]),
    [
      ['prod', 4],
      ['stage', 0],
    ],
  );
});
