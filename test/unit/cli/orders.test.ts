import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDueMessage } from '#shared/aws/due-message.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { type EvictionRecord, ending, type NodeState } from '#shared/eviction/records.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { stopsOf } from '#shared/state/rules-store.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { StoreError } from '#shared/state/store.ts';
import { aNode, aRecord, aRef } from '#test/contracts/partition-builders.ts';
import { shownCluster } from '#test/world/shown-cluster.ts';
import { commandLine, NOW } from './command-line.ts';

const prod = clusterName('prod');

test('stops one cluster for a period and all clusters until resumed, and lists both stops', async (t) => {
  const { run, rulesStore } = commandLine(t);
  assert.equal(
    await run('stop', 'prod', '--reason', 'an incident', '--for', '1h'),
    'Evictions are stopped in cluster prod until 2026-11-21T13:00:00Z.\n',
  );
  assert.equal(
    await run('stop', '--all', '--reason', 'a worse one'),
    "Evictions are stopped in all clusters. To resume, run taintward resume --all --reason 'REASON'.\n",
  );
  assert.deepEqual((await run('holds')).replace(/\bs[0-9a-f]{8}\b/, 's12345678').split('\n'), [
    'CLUSTER   ID          WHAT            SINCE                  UNTIL                  ACTOR   REASON',
    '(all)     stop        all evictions   2026-11-21T12:00:00Z                          anna    a worse one',
    'prod      s12345678   all evictions   2026-11-21T12:00:00Z   2026-11-21T13:00:00Z   anna    an incident',
    '',
  ]);
  await run('resume', 'prod', '--reason', 'over');
  assert.equal(
    await run('resume', 'prod', '--reason', 'over'),
    "Evictions are resumed in cluster prod.\nNo evictions were held by it.\nThe stop of all clusters stays in force. To end it, run taintward resume --all --reason 'REASON'.\n",
  );
  assert.deepEqual(stopsOf(await rulesStore.read(prod)), []);
  const isExcepted = /^\(all\) +stop +all evictions, except in prod /m;
  assert.match(await run('holds'), isExcepted);
  await run('stop', 'prod', '--reason', 'its own');
  assert.match(await run('holds'), isExcepted);
  await run('resume', 'prod', '--reason', 'over');
  await run('resume', '--all', '--reason', 'over');
  assert.equal(await run('holds'), 'No stops or holds.\n');
});

test('shows a stop of all clusters in each row of status, except a resumed one', async (t) => {
  const { run, fleet, store, state } = commandLine(t);
  const operator = await fleet.operator();
  for (const cluster of await fleet.clusters()) {
    await perform({ kind: 'apply-policy', cluster, text: 'mode: enforce\n' }, operator);
    const node = { cluster, node: nodeName('n1') };
    const schedule = [aRecord({ dueAt: NOW + 60_000 })];
    await store.commit(node, 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  }
  const shown = async () => {
    const [heads = '', prodRow = '', stageRow = ''] = (await run('status')).split('\n');
    const cell = (row: string, head: string) => row.slice(heads.indexOf(head)).split('   ')[0]?.trim();
    return [prodRow, stageRow].map((row) => ['MODE', 'NEXT', 'STOP'].map((head) => cell(row, head)));
  };
  assert.deepEqual(await shown(), [
    ['enforce', 'in 1m', ''],
    ['enforce', 'in 1m', ''],
  ]);
  await run('stop', '--all');
  assert.deepEqual(await shown(), [
    ['enforce, stopped', '', 'all: anna'],
    ['enforce, stopped', '', 'all: anna'],
  ]);
  assert.match(state.printed, /! All clusters are stopped by anna: no reason given\. To resume/);
  assert.match(await run('pending'), /(the stop of all clusters \(anna: no reason given\)\n.*){2}/);
  await run('resume', 'prod', '--reason', 'it is well');
  assert.deepEqual(await shown(), [
    ['enforce', 'in 1m', ''],
    ['enforce, stopped', '', 'all: anna'],
  ]);
  assert.match(state.printed, /! All clusters except prod are stopped by anna/);
  assert.equal(state.exitCode, 2);
  const { stop, clusters } = JSON.parse(await run('status', '-o', 'json'));
  assert.deepEqual(stop.resumed, ['prod']);
  assert.deepEqual(
    clusters.map((each: { stop?: { scope: string } }) => each.stop?.scope),
    [undefined, 'fleet'],
  );
});

test('pauses a cluster by a stop of its own, which neither changes nor ends another one', async (t) => {
  const { run, rulesStore, fleet, clock } = commandLine(t);
  const text = 'mode: enforce # ours\n';
  await perform({ kind: 'apply-policy', cluster: prod, text }, await fleet.operator());
  const paused = await run('pause', 'prod', '--reason', 'an upgrade', '--for', '1h');
  const [first] = (await rulesStore.read(prod)).orders.stops;
  assert.equal(
    paused,
    `Evictions are stopped in cluster prod until 2026-11-21T13:00:00Z. To resume, run taintward resume prod --id ${first?.id} --reason 'REASON'.\n`,
  );
  assert.match(await run('status'), /^prod +enforce, stopped until 2026-11-21T13:00:00Z /m);
  await run('stop', 'prod', '--reason', 'an incident');
  await run('pause', 'prod', '--reason', 'another', '--for', '30m');
  const { stops, policy } = (await rulesStore.read(prod)).orders;
  assert.deepEqual(
    stops.map(({ reason, until }) => [reason, until]),
    [
      ['an incident', undefined],
      ['an upgrade', NOW + 3_600_000],
      ['another', NOW + 1_800_000],
    ],
  );
  assert.equal(policy?.text, text);
  const [incident, upgrade, another] = stops.map(({ id = '' }) => id);
  await assert.rejects(run('resume', 'prod', '--reason', 'done'), {
    message: `Cluster prod has several stops. Specify one of: --id ${incident} (anna: an incident), --id ${upgrade} (anna: an upgrade until 2026-11-21T13:00:00Z), --id ${another} (anna: another until 2026-11-21T12:30:00Z).`,
  });
  assert.match(
    await run('status'),
    new RegExp(`the longest of 3 stops\\. To resume, run taintward resume prod --id ${incident} `),
  );
  for (const clusters of [['--all'], ['prod', 'stage']])
    await assert.rejects(run('resume', ...clusters, '--id', `${another}`, '--reason', 'done'), {
      message: '--id names a stop of one cluster. Specify that cluster alone.',
    });
  assert.equal(
    await run('resume', 'prod', '--id', `${another}`, '--reason', 'done'),
    'A stop of cluster prod is ended. Another one keeps evictions stopped (anna: an incident).\nNo evictions were held by it.\n',
  );
  await clock.advanceTo(NOW + 3_600_000);
  assert.equal(
    await run('resume', 'prod', '--reason', 'over'),
    'Evictions are resumed in cluster prod.\nNo evictions were held by it.\n',
  );
});

test('ends the stop of a cluster before it resumes the cluster from a stop of all', async (t) => {
  const { run, fleet, rulesStore } = commandLine(t);
  await perform({ kind: 'apply-policy', cluster: prod, text: 'mode: enforce\n' }, await fleet.operator());
  await run('pause', 'prod', '--reason', 'an upgrade');
  await run('stop', '--all', '--reason', 'an incident', '--for', '1h');
  assert.match(
    await run('resume', 'prod', '--reason', 'done'),
    /^A stop of cluster prod is ended\. Another one, of all clusters, keeps evictions stopped until 2026-11-21T13:00:00Z \(anna: an incident\)\.\n/,
  );
  assert.equal(stopsOf(await rulesStore.read(prod)).length, 1);
  assert.match(
    await run('resume', 'prod', '--reason', 'checked'),
    /^Evictions are resumed in cluster prod\./,
  );
  assert.deepEqual(stopsOf(await rulesStore.read(prod)), []);
});

test('acts on the other clusters when one fails, and then reports each failure', async (t) => {
  const { run, rulesStore } = commandLine(t);
  const stages = async () => stopsOf(await rulesStore.read(clusterName('stage'))).length;
  t.mock.method(rulesStore, 'read', async (cluster: typeof prod) => {
    if (cluster === prod) throw new StoreError('The rules of prod are unreadable.');
    return SqliteRulesStore.prototype.read.call(rulesStore, cluster);
  });
  await assert.rejects(run('stop', 'prod', 'stage'), { message: 'The rules of prod are unreadable.' });
  assert.equal(await stages(), 1);
  t.mock.restoreAll();
  const resume = () => run('resume', 'prod', 'stage', '--reason', 'over');
  await assert.rejects(resume, { message: 'Cluster prod is not stopped. Nothing to resume.' });
  assert.equal(await stages(), 0);
  await assert.rejects(resume, {
    message: /Cluster prod is not stopped\. .* Cluster stage is not stopped\. /,
  });
});

test('does not resume, or report as resumed, a stop or pause that expired', async (t) => {
  const { run, fleet, clock } = commandLine(t);
  const operator = await fleet.operator();
  await perform({ kind: 'apply-policy', cluster: prod, text: 'mode: enforce\n' }, operator);
  await run('pause', 'prod', '--reason', 'an upgrade', '--for', '1h');
  await run('stop', '--all', '--reason', 'a worse one', '--for', '1h');
  await clock.advanceTo(NOW + 3_600_000);
  await run('stop', 'prod', '--reason', 'an incident');
  assert.equal(
    await run('resume', 'prod', '--reason', 'over'),
    'Evictions are resumed in cluster prod.\nNo evictions were held by it.\n',
  );
  await assert.rejects(run('resume', 'prod', '--reason', 'over'), { name: 'OperatorError' });
});

test('holds pods, workloads, nodes, namespaces, and zones by name, and pods by labels, and releases them by hold ID', async (t) => {
  const { run, rulesStore } = commandLine(t);
  const output = await run('hold', 'pod', 'default/web-0', '--cluster', 'prod', '--reason', 'a debugger');
  const [, id = ''] =
    /^Pod default\/web-0 in cluster prod is held\. .* release (h[0-9a-f]{8}) /.exec(output) ?? [];
  await run(
    'hold',
    'workload',
    'default/Deployment/web',
    '--cluster',
    'prod',
    '--reason',
    'a migration',
    '--for',
    '2h',
  );
  await run('hold', 'node', 'node-1', '--cluster', 'stage', '--reason', 'a backup');
  await run('hold', 'namespace', 'shop', '--cluster', 'stage', '--reason', 'a sale');
  await run(
    'hold',
    'labels',
    'app=web,tier in (a,b)',
    '--cluster',
    'stage',
    '--reason',
    'a sale',
    '-n',
    'shop',
  );
  await run('hold', 'zone', 'eu-1', '--cluster', 'stage', '--reason', 'a repair');
  const shown = JSON.parse(await run('holds', '-o', 'json'));
  assert.deepEqual(
    shown.map(({ cluster, what, reason }: Record<string, string>) => [cluster, what, reason]),
    [
      ['prod', 'pod default/web-0', 'a debugger'],
      ['prod', 'workload default/Deployment/web', 'a migration'],
      ['stage', 'node node-1', 'a backup'],
      ['stage', 'namespace shop', 'a sale'],
      ['stage', 'pods with labels app=web,tier in (a, b) in namespace shop', 'a sale'],
      ['stage', 'zone eu-1', 'a repair'],
    ],
  );
  assert.equal(
    await run('release', id, '--reason', 'done'),
    `Hold ${id} is released: pod default/web-0 in cluster prod.\nNo evictions were held by it.\n`,
  );
  assert.equal((await rulesStore.read(prod)).orders.holds.length, 1);
  await assert.rejects(run('release', id, '--reason', 'done'), {
    message: `Hold "${id}" not found. Run "taintward holds".`,
  });
});

test('rejects a hold that matches nothing unless --yes is given', async (t) => {
  const pod = {
    metadata: {
      namespace: 'shop',
      name: 'web-abc-1',
      uid: 'u1',
      creationTimestamp: '2026-11-21T11:00:00Z',
      labels: { app: 'web' },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-abc', controller: true }],
    },
    spec: { nodeName: 'node-1' },
  };
  const node = { metadata: { name: 'node-1', labels: { 'topology.kubernetes.io/zone': 'eu-1' } } };
  const shown = { '/api/v1/pods': [pod], '/api/v1/namespaces/shop/pods': [pod], '/api/v1/nodes': [node] };
  const live = shownCluster(shown, NOW);
  const { run, rulesStore } = commandLine(t, { cluster: async () => live });
  const hold = (...args: readonly string[]) => run('hold', ...args, '--cluster', 'prod', '--reason', 'x');
  await assert.rejects(hold('pod', 'shop/nope'), {
    message: 'Pod shop/nope not found in cluster prod. To hold it anyway, rerun with --yes.',
  });
  await assert.rejects(hold('node', 'nope'), {
    message: 'Node nope not found in cluster prod. To hold it anyway, rerun with --yes.',
  });
  await assert.rejects(hold('workload', 'shop/Foo/web'), {
    message:
      'Workload shop/Foo/web has no pods in cluster prod. Check namespace, kind, and name. To hold it anyway, rerun with --yes.',
  });
  await assert.rejects(hold('namespace', 'shopp'), {
    message:
      'Namespace shopp has no pods in cluster prod. Check its name. To hold it anyway, rerun with --yes.',
  });
  await assert.rejects(hold('labels', 'app=wep', '-n', 'shop'), {
    message:
      'Pods with labels app=wep in namespace shop not found in cluster prod. To hold it anyway, rerun with --yes.',
  });
  await assert.rejects(hold('zone', 'eu-2'), { message: /^Zone eu-2 not found in cluster prod\./ });
  await assert.rejects(hold('labels', '=web'), { name: 'LabelSelectorError' });
  await assert.rejects(hold('labels', `app in (${'web-abc,'.repeat(200)}x)`, '--yes'), {
    message: 'The target exceeds 1000 characters. Shorten its label selector.',
  });
  assert.deepEqual((await rulesStore.read(prod)).orders.holds, []);
  await hold('workload', 'shop/Deployment/web');
  await hold('namespace', 'shop');
  await hold('labels', 'app=web');
  await hold('zone', 'eu-1');
  await hold('pod', 'shop/nope', '--yes');
  assert.equal((await rulesStore.read(prod)).orders.holds.length, 5);
});

test('holds a pod of an unreachable cluster with a warning', async (t) => {
  const { run, state, rulesStore } = commandLine(t);
  await run('hold', 'pod', 'shop/web', '--cluster', 'prod', '--reason', 'x');
  assert.equal(
    state.complained,
    "Fleet: a test\nCould not check whether pod shop/web exists: Cluster prod can't be reached from here.\n",
  );
  assert.equal((await rulesStore.read(prod)).orders.holds.length, 1);
});

test('requires a cluster name for a hold if there are several clusters', async (t) => {
  const { run } = commandLine(t);
  await assert.rejects(run('hold', 'node', 'n1', '--reason', 'x'), {
    message: 'Missing cluster name. Specify one of: prod, stage.',
  });
});

test('lists guard trips and releases them by cluster', async (t) => {
  const { run, rulesStore } = commandLine(t);
  const { guard } = await rulesStore.read(prod);
  const trip = { scope: 'zone', zone: 'a', trippedAt: NOW, nodes: 6, outOf: 10 } as const;
  await rulesStore.changeGuard(prod, guard, [trip]);
  assert.match(await run('holds', 'prod'), /prod +guard +zone\/a .* guard +6 of 10 nodes were affected/);
  await assert.rejects(run('release', 'guard', '--reason', 'x'), {
    message: "Missing cluster name. Usage: taintward release guard CLUSTER --reason 'REASON'",
  });
  await run('release', 'guard', 'prod', '--reason', 'they are dead for certain');
  assert.deepEqual((await rulesStore.read(prod)).guard.trips, []);
  assert.match(await run('status'), /^prod .* zone\/a \(released\)/m);
  const { clusters } = JSON.parse(await run('status', '-o', 'json'));
  assert.deepEqual(clusters[0].releasedScopes, [{ scope: 'zone/a' }]);

  const found = (await rulesStore.read(prod)).guard;
  await rulesStore.changeGuard(prod, found, [trip, { ...trip, zone: 'b' }]);
  await run('release', 'guard', 'prod', '--scope=zone/b', '--reason', 'x');
  assert.deepEqual((await rulesStore.read(prod)).guard.trips, [trip]);
});

test('records a stop without a reason as such', async (t) => {
  const { run, rulesStore } = commandLine(t);
  await run('stop', '--all');
  assert.equal((await rulesStore.fleetStop())?.reason, 'no reason given');
  await run('stop', 'prod');
  assert.equal((await rulesStore.read(prod)).orders.stops[0]?.reason, 'no reason given');
});

test('rejects a missing reason or an invalid target in one sentence', async (t) => {
  const { run, state } = commandLine(t);
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['pause', 'prod'], /required option '--reason <text>' not specified/],
    [['hold', 'pod', 'web-0', '--cluster', 'prod', '--reason', 'x'], /Specify the pod as NAMESPACE\/NAME\./],
    [
      ['hold', 'workload', 'a/web', '--cluster', 'prod', '--reason', 'x'],
      /the workload as NAMESPACE\/KIND\/NAME/,
    ],
    [
      ['stop', 'prod', '--reason', 'x', '--for', 'long'],
      /Specify a duration, for example 90s, 15m, 4h, or 4d\./,
    ],
    [['stop', 'prod', '--reason', 'x', '--for', '0s'], /Specify a duration/],
    [['pending', '--state-dir', ''], /Specify a directory, or omit the option/],
  ];
  for (const [args, complaint] of cases) {
    state.complaint = '';
    await assert.rejects(run(...args), { name: 'CommanderError' });
    assert.match(state.complaint, complaint);
  }
  await assert.rejects(run('stop', 'prod', '--reason', ''), { name: 'OperatorError' });
  await assert.rejects(run('stop', 'nowhere', '--reason', 'x'), { name: 'FleetError' });
  await assert.rejects(run('clusters', 'list', '--state-dir', 'dir'), {
    name: 'CliError',
    message:
      'An npm start manages the clusters that it was started with (a test). For the clusters of a deployment, specify --table NAME.',
  });
});

test('lists actions with actor and reason, newest first', async (t) => {
  const { run, clock } = commandLine(t);
  await run('stop', 'prod', '--reason', 'an incident');
  await clock.advanceTo(NOW + 60_000);
  await run('resume', 'prod', '--reason', 'over');
  assert.deepEqual((await run('audit')).split('\n'), [
    'WHEN                   ACTOR   CLUSTER   WHAT                REASON',
    '2026-11-21T12:01:00Z   anna    prod      resumed evictions   over',
    '2026-11-21T12:00:00Z   anna    prod      stopped evictions   an incident',
    '',
  ]);
  assert.equal(await run('audit', 'stage'), 'No audit entries.\n');
  const [newest] = JSON.parse(await run('audit', 'prod', '--since', '30s', '-o', 'json'));
  assert.equal(newest.kind, 'resume');
  const dated = JSON.parse(await run('audit', '--since', '2026-11-21T12:00:30Z', '-o', 'json'));
  assert.deepEqual(dated, [newest]);
});

test('lists pending evictions by deadline with the gate of each', async (t) => {
  const { run, store, fleet } = commandLine(t);
  await perform({ kind: 'apply-policy', cluster: prod, text: 'mode: enforce\n' }, await fleet.operator());
  const output = await run('hold', 'pod', 'default/held', '--cluster', 'prod', '--reason', 'a debugger');
  const [id = ''] = /h[0-9a-f]{8}/.exec(output) ?? [];
  const held = { by: { kind: 'hold' as const, id }, since: NOW };
  const schedule = [
    aRecord({ name: 'later' }),
    aRecord({ name: 'held', dueAt: NOW, held }),
    aRecord({ name: 'lost', dueAt: NOW + 1, gaveUpAt: NOW + 2 }),
    aRecord({
      name: 'needed',
      dueAt: NOW + 2,
      blocked: { since: NOW + 3, nextTryAt: NOW + 5_003, reason: 'it needs 1 healthy pod' },
    }),
    aRecord({
      name: 'moving',
      dueAt: NOW + 2,
      blocked: { since: NOW + 3, nextTryAt: NOW + 5_003, by: 'admission', reason: 'a webhook moves it' },
    }),
    aRecord({ name: 'queued', dueAt: NOW + 3, turnAt: NOW + 1_000 }),
  ];
  await store.commit(aRef(prod), 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  const rows = (await run('pending')).split('\n').map((line) => line.split(/ {3,}/));
  assert.deepEqual(
    rows.slice(1, -1).map(([, , pod, , , , why]) => [pod, why]),
    [
      ['default/held', `hold ${id} (anna: a debugger)`],
      ['default/lost', 'failed at 2026-11-21T12:00:00Z: retries exhausted'],
      ['default/moving', 'admission since 2026-11-21T12:00:00Z: a webhook moves it'],
      ['default/needed', 'disruption budget since 2026-11-21T12:00:00Z: it needs 1 healthy pod'],
      ['default/queued', 'rate limited until 2026-11-21T12:00:01Z'],
      ['default/later', undefined],
    ],
  );
  const shown = JSON.parse(await run('pending', 'prod', '--held', '-o', 'json'));
  assert.deepEqual(
    shown.map(({ pod, dueAt, taints }: Record<string, unknown>) => [pod, dueAt, taints]),
    [['held', '2026-11-21T12:00:00.000Z', ['node.kubernetes.io/unreachable:NoExecute']]],
  );
  assert.equal(await run('pending', 'stage'), 'No pending evictions.\n');
});

test('also retries evictions that wait for their next try, and says how many', async (t) => {
  const { run, store, state } = commandLine(t);
  const next = { attempts: 3, nextTryAt: NOW + 60_000, since: NOW, error: 'refused', everything: true };
  const outage = { ...next, triedAt: NOW };
  const held = { by: { kind: 'stopped', scope: 'fleet' }, since: NOW } as const;
  const [failed, waiting, other] = [
    aRecord({ dueAt: NOW, gaveUpAt: NOW }),
    aRecord({ dueAt: NOW }),
    aRecord({ dueAt: NOW }),
  ];
  const schedule = [failed, waiting, other, aRecord({ dueAt: NOW, held }), aRecord()];
  const commit = (node: NodeState, revision: number, records: readonly EvictionRecord[]) =>
    store.commit(aRef(prod), revision, { node, schedule: records, end: [], live: true }, NOW);
  await commit({ ...aNode(), outage }, 0, schedule);
  const retry = () => run('retry', 'prod');
  assert.equal(
    await retry(),
    '1 failed eviction and 2 waiting for the next try are retried in cluster prod.\n',
  );
  const [message] = state.sent.map(parseDueMessage);
  assert.ok(message?.kind === 'retry');
  assert.deepEqual(message.pods.toSorted(), [failed, waiting, other].map(({ uid }) => uid).toSorted());
  assert.match(await run('pending', 'prod'), /retrying at \S+: the API server does not answer: refused/);
  const shown: { nextTryAt?: string; error?: string }[] = JSON.parse(
    await run('pending', 'prod', '-o', 'json'),
  );
  assert.equal(shown.filter(({ error, nextTryAt }) => error === 'refused' && nextTryAt).length, 3);
  await store.end(aRef(prod), [ending(failed, { outcome: 'already-gone' })], NOW);
  assert.equal(
    await retry(),
    '0 failed evictions and 2 waiting for the next try are retried in cluster prod.\n',
  );
  await store.end(aRef(prod), [ending(other, { outcome: 'already-gone' })], NOW);
  assert.equal(
    await retry(),
    '0 failed evictions and 1 waiting for the next try are retried in cluster prod.\n',
  );
});

test('retries failed evictions with one message per node', async (t) => {
  const { run, store, state } = commandLine(t);
  const lost = [aRecord({ gaveUpAt: NOW }), aRecord({ gaveUpAt: NOW })];
  await store.commit(
    aRef(prod),
    0,
    { node: aNode(), schedule: [...lost, aRecord()], end: [], live: true },
    NOW,
  );
  assert.equal(
    await run('retry', '--reason', 'the webhook is mended'),
    '2 failed evictions are retried in cluster prod.\n0 failed evictions are retried in cluster stage.\n',
  );
  const messages = state.sent.map(parseDueMessage);
  assert.deepEqual(
    messages.map((message) => message.kind === 'retry' && message.pods.toSorted()),
    [lost.map(({ uid }) => uid).toSorted()],
  );
  const audit = JSON.parse(await run('audit', '-o', 'json'));
  assert.deepEqual(
    audit.map(({ cluster, kind, message, reason }: Record<string, unknown>) => [
      cluster,
      kind,
      message,
      reason,
    ]),
    [['prod', 'retry', 'retried failed evictions: 2', 'the webhook is mended']],
  );
});
