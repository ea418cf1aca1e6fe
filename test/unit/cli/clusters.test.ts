import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createProgram } from '#functions/cli/program.ts';
import { type ClusterName, clusterName, nodeName } from '#shared/eviction/identity.ts';
import { EVICT_PERMISSIONS, RELAY_PERMISSIONS } from '#shared/kubernetes/permissions.ts';
import { type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import { Operator } from '#shared/state/operator.ts';
import type { Access, ClusterRegistry, Part, RegisteredCluster } from '#shared/state/registry.ts';
import { StoreError } from '#shared/state/store.ts';
import { aNode, someRecords } from '#test/contracts/partition-builders.ts';
import { type Answer, json, scriptedServer, status } from '#test/unit/kubernetes/scripted-server.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { quiet } from './command-line.ts';
import { plainOutput } from './plain-output.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const EKS: Access = { kind: 'eks', clusterName: 'prod', region: 'eu-west-1' };

const registered = (name: string, access: RegisteredCluster['access'] = EKS): RegisteredCluster => ({
  name: clusterName(name),
  access,
  addedAt: NOW,
});

const allowAll: Answer = json({ status: { allowed: true } }, 201);

/** The command line on a registry with these clusters, whose API servers all answer the same. */
const commandLine = (t: TestContext, answer: Answer, ...clusters: RegisteredCluster[]) =>
  commandLineOf(t, {}, answer, ...clusters);

/** The same on a fleet of which these parts are others. */
async function commandLineOf(
  t: TestContext,
  parts: Partial<Fleet>,
  answer: Answer,
  ...clusters: RegisteredCluster[]
) {
  const { host, requests } = await scriptedServer(t, answer);
  const content = new Map<ClusterName, RegisteredCluster>(clusters.map((each) => [each.name, each]));
  const strays: string[] = [];
  const registry: ClusterRegistry = {
    list: async () => ({ clusters: [...content.values()], strays }),
    get: async (name) => content.get(name),
    add: async (cluster) => {
      if (content.has(cluster.name)) return 'exists';
      content.set(cluster.name, cluster);
      return 'added';
    },
    remove: async (name) => (content.delete(name) ? 'removed' : 'unknown'),
  };
  const clock = new DrivenClock(NOW);
  const { fleet, rulesStore, store } = embeddedFleet(
    t,
    { clusters: [], clock },
    { kind: 'deployed', registry, ...parts },
  );
  const output = plainOutput();
  const connected: Part[] = [];
  const state = Object.assign(output.state, { complaint: '', tables: [] as (string | undefined)[] });
  const program = createProgram({
    fleet: ({ table }) => {
      state.tables.push(table);
      return fleet;
    },
    live: () => assert.fail('no command on clusters asks them what lives there'),
    connect: (_cluster, part) => {
      connected.push(part);
      return {
        host,
        requestOptions: async () => ({ server: new URL(`http://${host}`), headers: {} }),
      };
    },
    clock,
    ...output.deps,
    complain: (text) => {
      state.complaint += text;
    },
  });
  quiet(program, (text) => {
    state.complaint += text;
  });
  const run = (...args: string[]) => program.parseAsync(args, { from: 'user' });
  const audited = async () =>
    (await rulesStore.audit({ from: 0, to: NOW * 2 })).map(({ kind, cluster, who, what }) => [
      kind,
      cluster,
      who,
      what,
    ]);
  return { run, state, content, strays, requests, host, rulesStore, store, connected, audited };
}

const ADD = ['clusters', 'add', 'prod', '--eks', 'prod', '--region', 'eu-west-1'];

test('a cluster that can be reached and grants what is needed is registered', async (t) => {
  const { run, state, content, requests } = await commandLine(t, allowAll);
  await run(...ADD);
  assert.deepEqual([...content.values()], [registered('prod')]);
  assert.match(
    state.printed,
    /^Registered cluster prod\. .*\nConnection and permissions are verified\. .*\nThe cluster is in observe mode: .*\n$/,
  );
  assert.ok(requests.length > 0);
});

const BY_AGENT = ['clusters', 'add', 'closed', '--agent', 'edge-1'];

test('a cluster in which an agent runs is registered unseen, when that has its queue, and who is to start it is told how', async (t) => {
  const asked: string[] = [];
  const hasAgent = async (agent: string) => asked.push(agent) > 0;
  const { run, state, content, requests } = await commandLineOf(t, { hasAgent }, allowAll);
  await run(...BY_AGENT);
  assert.deepEqual([...content.values()], [registered('closed', { kind: 'agent', agent: 'edge-1' })]);
  assert.deepEqual(asked, ['edge-1']);
  assert.deepEqual(requests, []);
  assert.match(
    state.printed,
    /\nThe queue of agent edge-1 exists\. .*\n.*\nOnly agent edge-1 works in this cluster\. Run the agent there, with CLUSTER=closed \(docs\/how-to\/run-an-agent\.md\)\.\n$/,
  );
  state.printed = '';
  await run('clusters', 'list');
  assert.match(state.printed, /\nclosed .* agent edge-1, in the cluster\n/);
});

test('an agent that is not deployed gets no cluster, unless nobody is to look', async (t) => {
  const { run, content } = await commandLineOf(t, { hasAgent: async () => false }, allowAll);
  await assert.rejects(run(...BY_AGENT), {
    name: 'CliError',
    message:
      'Agent "edge-1" not found in this account and region. Deploy its stack first (docs/how-to/run-an-agent.md), or skip the check with --no-check.',
  });
  assert.equal(content.size, 0);
  await run(...BY_AGENT, '--no-check');
  assert.equal(content.size, 1);
});

test('names that would have the rights of an agent reach into other clusters are refused for one, and for nobody else', async (t) => {
  const { run, content } = await commandLineOf(t, { hasAgent: async () => true }, allowAll);
  for (const name of ['prod*', 'pro?', '$prod', 'TAINTED', 'HISTORY']) {
    await assert.rejects(run('clusters', 'add', name, '--agent', 'edge-1'), {
      name: 'CliError',
      message: /^The name .* must (not have \*, \? or \$ in it|be another) for an agent/,
    });
    assert.equal(content.size, 0, name);
    await run('clusters', 'add', name, ...ADD.slice(3));
    assert.equal(content.size, 1, name);
    content.clear();
  }
});

test('a cluster that is registered under a name of before is told to be governed as before', async (t) => {
  const { run, state, rulesStore } = await commandLine(t, allowAll);
  const operator = new Operator({ rulesStore, clock: new DrivenClock(NOW), who: 'anna' });
  await operator.applyPolicy(clusterName('prod'), 'mode: enforce');
  await run(...ADD);
  assert.match(state.printed, /\nThe policy applied earlier under this name is in force: enforce\.\n$/);
});

test('a cluster that does not grant what is needed is not registered, and what is missing is named', async (t) => {
  const { run, content, host } = await commandLine(t, (response, request) => {
    const { verb } = JSON.parse(request.body).spec.resourceAttributes;
    json({ status: { allowed: verb !== 'delete' && verb !== 'patch' } }, 201)(response, request);
  });
  await assert.rejects(run(...ADD), {
    name: 'ApiError',
    message: `The credentials for ${host} lack rights: grant them in all namespaces delete pods, patch pods/status.`,
  });
  assert.equal(content.size, 0);
});

test('of a cluster with an identity for each part, each is asked for the rights of that part', async (t) => {
  const { run, content, requests, connected } = await commandLine(t, allowAll);
  const role = (part: string) => `arn:aws:iam::210987654321:role/taintward-${part}`;
  await run(...ADD, '--relay-role-arn', role('relay'), '--evict-role-arn', role('evict'));
  assert.deepEqual(content.get(clusterName('prod'))?.access, {
    ...EKS,
    role: { relay: { arn: role('relay') }, evict: { arn: role('evict') } },
  });
  assert.deepEqual(connected, ['relay', 'evict']);
  assert.equal(requests.length, RELAY_PERMISSIONS.length + EVICT_PERMISSIONS.length + 1);
});

test('a cluster that does not let the Leases of nodes be read is registered, with a hint', async (t) => {
  const { run, content, state } = await commandLine(t, (response, request) => {
    const { resource } = JSON.parse(request.body).spec.resourceAttributes;
    json({ status: { allowed: resource !== 'leases' } }, 201)(response, request);
  });
  await run(...ADD);
  assert.equal(content.size, 1);
  assert.match(
    state.printed,
    /\nGrant get leases in kube-node-lease \(cdk\/rbac\/evict\)\. Otherwise, pods are evicted/,
  );
});

test('a cluster that cannot be reached is not registered, and why is said', async (t) => {
  const { run, content } = await commandLine(t, (response) => response.destroy());
  await assert.rejects(run(...ADD), { name: 'ApiError', message: /connection was reset/ });
  assert.equal(content.size, 0);
});

const resets: Answer = (response) => response.destroy();

test('where this machine does not reach a cluster evict is asked, whose word counts, and who spoke is said', async (t) => {
  const asked: unknown[] = [];
  const checkAccess: NonNullable<Fleet['checkAccess']> = async (cluster) => {
    asked.push(cluster);
    return { works: true, version: 'v1.34.2' };
  };
  const { run, state, content } = await commandLineOf(t, { checkAccess }, resets);
  await run(...ADD);
  assert.deepEqual(asked, [registered('prod')]);
  assert.deepEqual([...content.keys()], ['prod']);
  assert.match(
    state.printed,
    /\nThis machine cannot verify the cluster \(.*connection was reset.*\), but evict reaches it \(Kubernetes v1\.34\.2\) and has the required permissions/,
  );
});

test('where this machine is not let in, evict is asked, too: its identity is another one', async (t) => {
  const checkAccess = async () => ({ works: true, version: 'v1.34.2' }) as const;
  const { run, content } = await commandLineOf(t, { checkAccess }, status(401, 'Unauthorized', 'no'));
  await run(...ADD);
  assert.equal(content.size, 1);
});

test('a cluster that evict does not reach, either, is not registered, and both say why', async (t) => {
  const checkAccess = async () => ({ works: false, reason: 'Nobody lets it in.' }) as const;
  const { run, content } = await commandLineOf(t, { checkAccess }, resets);
  await assert.rejects(run(...ADD), {
    name: 'CliError',
    message:
      /connection was reset.* Asked in its place, evict said: Nobody lets it in\. Fix the cause, or skip the check with --no-check/,
  });
  assert.equal(content.size, 0);
});

test('where evict cannot be asked it is said why, beside what this machine found', async (t) => {
  const checkAccess = () => Promise.reject(new FleetError('tw-evict cannot be asked.'));
  const { run, content } = await commandLineOf(t, { checkAccess }, resets);
  await assert.rejects(run(...ADD), {
    name: 'CliError',
    message: /connection was reset.* tw-evict cannot be asked\. Fix the cause/,
  });
  assert.equal(content.size, 0);
});

test('evict is not asked of a context of a file, which it does not have', async (t) => {
  const checkAccess = () => assert.fail('evict was asked');
  const { run } = await commandLineOf(t, { checkAccess }, resets);
  await assert.rejects(run('clusters', 'add', 'kind', '--context', 'kind'), { name: 'ApiError' });
});

test('with --no-check nobody is asked, and that is said', async (t) => {
  const checkAccess = () => assert.fail('evict was asked');
  const { run, state, content, requests } = await commandLineOf(t, { checkAccess }, resets);
  await run(...ADD, '--no-check');
  assert.deepEqual([content.size, requests.length], [1, 0]);
  assert.match(state.printed, /\nConnection and permissions were not checked\. /);
});

test('a name that is taken is refused before anything is asked of the cluster', async (t) => {
  const { run, content, requests } = await commandLine(
    t,
    allowAll,
    registered('prod', { ...EKS, region: 'x' }),
  );
  await assert.rejects(run(...ADD), { name: 'CliError', message: /^Cluster "prod" already exists\. / });
  assert.deepEqual(content.get(clusterName('prod'))?.access, { ...EKS, region: 'x' });
  assert.equal(requests.length, 0);
});

test('who registers a context of a file hears that the deployed functions cannot use it', async (t) => {
  const { run, state } = await commandLine(t, allowAll);
  await run('clusters', 'add', 'kind', '--context', 'kind');
  assert.match(state.printed, /\nOnly processes with access to its kubeconfig file can reach the cluster/);
});

test('a name that no cluster can have is refused', async (t) => {
  const { run, state } = await commandLine(t, allowAll);
  for (const name of ['a#b', 'a b', '', 'x'.repeat(201)]) {
    await assert.rejects(run('clusters', 'show', name));
  }
  assert.match(
    state.complaint,
    /^error: command-argument value 'a#b' is invalid for argument 'name'\. It must /,
  );
});

test('clusters are listed in aligned columns, and each says how it is reached', async (t) => {
  const { run, state } = await commandLine(
    t,
    allowAll,
    registered('prod', { ...EKS, role: { arn: 'arn:aws:iam::210987654321:role/r', externalId: 'x' } }),
    registered('elsewhere', { kind: 'kubeconfig-secret', secretArn: 'arn:secret', context: 'c' }),
    registered('each', { kind: 'kubeconfig-secret', secretArn: { relay: 'arn:r', evict: 'arn:e' } }),
    registered('mine', { kind: 'local-context', context: 'kind' }),
    registered('odd', { kind: 'unreadable', reason: 'its registration cannot be read' }),
  );
  await run('clusters', 'list');
  assert.deepEqual(state.printed.split('\n'), [
    'NAME        ADDED                      ACCESS',
    'prod        2026-11-21T12:00:00.000Z   EKS cluster prod in eu-west-1, as arn:aws:iam::210987654321:role/r',
    'elsewhere   2026-11-21T12:00:00.000Z   kubeconfig in arn:secret, context c',
    'each        2026-11-21T12:00:00.000Z   kubeconfig in arn:r (relay) and arn:e (evict)',
    'mine        2026-11-21T12:00:00.000Z   context kind of the default kubeconfig file',
    'odd         2026-11-21T12:00:00.000Z   its registration cannot be read',
    '',
  ]);
});

test('what stands among the registrations and is none is told, and the clusters are listed', async (t) => {
  const { run, state, strays } = await commandLine(t, allowAll, registered('prod'), {
    name: clusterName('torn'),
    access: { kind: 'unreadable', reason: 'its registration cannot be read' },
  });
  strays.push('The item NODE of x is not a valid cluster registration.');
  await run('clusters', 'list');
  assert.match(state.printed, /^prod .*\ntorn +\? +its registration cannot be read$/m);
  assert.equal(
    state.complaint,
    'The item NODE of x is not a valid cluster registration. Delete it from the table.\n',
  );
});

test('programs get JSON', async (t) => {
  const { run, state } = await commandLine(t, allowAll, registered('prod'));
  const expected = { name: 'prod', access: EKS, addedAt: '2026-11-21T12:00:00.000Z' };
  await run('clusters', 'list', '--output', 'json');
  assert.deepEqual(JSON.parse(state.printed), [expected]);
  state.printed = '';
  await run('clusters', 'show', 'prod', '-o', 'json');
  assert.deepEqual(JSON.parse(state.printed), expected);
});

test('without any cluster, the list says how to register one', async (t) => {
  const { run, state } = await commandLine(t, allowAll);
  await run('clusters', 'list');
  assert.match(state.printed, /^No clusters are registered\. To register one, run taintward clusters add/);
});

test('a cluster is shown and removed by its name', async (t) => {
  const { run, state, content } = await commandLine(t, allowAll, registered('prod'), registered('other'));
  await run('clusters', 'show', 'prod');
  assert.match(state.printed, /^NAME +prod\nADDED +2026-11-21T12:00:00\.000Z\nACCESS +EKS cluster prod/);
  await run('clusters', 'remove', 'prod');
  assert.match(state.printed, /Removed cluster prod from the registry/);
  assert.deepEqual([...content.keys()], ['other']);
});

test('the audit says who registered a cluster and how, and who removed it', async (t) => {
  const { run, audited } = await commandLine(t, allowAll);
  await run(...ADD);
  await run('clusters', 'remove', 'prod');
  assert.deepEqual((await audited()).toSorted(), [
    ['cluster-added', 'prod', 'anna', 'registered the cluster: EKS cluster prod in eu-west-1'],
    ['cluster-removed', 'prod', 'anna', 'removed the cluster from the registry'],
  ]);
});

test('a cluster is registered with a warning where the audit cannot be written', async (t) => {
  const operator = () => Promise.reject(new FleetError('Nobody knows who you are.'));
  const { run, state, content } = await commandLineOf(t, { operator }, allowAll);
  await run(...ADD);
  assert.equal(content.size, 1);
  assert.equal(
    state.complaint,
    'The audit log has no entry that you registered the cluster: EKS cluster prod in eu-west-1. Nobody knows who you are.\n',
  );
});

describe('a cluster with pending evictions', () => {
  const withPending = async (t: TestContext, parts: Partial<Fleet> = {}) => {
    const found = await commandLineOf(t, parts, allowAll, registered('prod'));
    const ref = { cluster: clusterName('prod'), node: nodeName('node-1') };
    await found.store.commit(ref, 0, { node: aNode(), schedule: someRecords(2), end: [], live: true }, NOW);
    return found;
  };
  const loss =
    /^Cluster prod has 2 pending evictions\. Once due, they fail as unregistered, with a dead letter /;

  test('is removed with --yes, and says what is lost', async (t) => {
    const { run, state, content } = await withPending(t);
    await run('clusters', 'remove', 'prod', '--yes');
    assert.match(state.printed, loss);
    assert.equal(content.size, 0);
  });

  test('is not removed where nobody can be asked', async (t) => {
    const { run, state, content } = await withPending(t);
    await assert.rejects(run('clusters', 'remove', 'prod'), {
      name: 'CliError',
      message: /^Cannot prompt: .* rerun with --yes\.$/,
    });
    assert.match(state.printed, loss);
    assert.equal(content.size, 1);
  });

  test('that cannot be counted is not removed without --yes', async (t) => {
    const store = {
      // biome-ignore lint/correctness/useYield: it fails before the first.
      async *taintedNodes() {
        throw new StoreError('The table is away.');
      },
    } as unknown as Fleet['store'];
    const { run, state, content } = await commandLineOf(t, { store }, allowAll, registered('prod'));
    await assert.rejects(run('clusters', 'remove', 'prod'), { name: 'CliError' });
    assert.match(
      state.printed,
      /may have pending evictions, which can't be counted \(The table is away\)\. /,
    );
    await run('clusters', 'remove', 'prod', '--yes');
    assert.equal(content.size, 0);
  });
});

test('a cluster that is not there can be neither shown nor removed', async (t) => {
  const { run } = await commandLine(t, allowAll);
  for (const command of ['show', 'remove']) {
    await assert.rejects(run('clusters', command, 'prod'), {
      name: 'CliError',
      message: 'Cluster "prod" not found. Run "taintward clusters list".',
    });
  }
});

test('the table is the one that is named', async (t) => {
  const { run, state } = await commandLine(t, allowAll);
  await run('clusters', 'list');
  await run('clusters', 'list', '--table', 'other');
  await run('--table', 'another', 'clusters', 'list');
  assert.deepEqual(state.tables, [undefined, 'other', 'another']);
});
