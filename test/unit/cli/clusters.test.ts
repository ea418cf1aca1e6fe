import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { createProgram } from '#functions/cli/program.ts';
import type { AccessAnswer } from '#shared/access/access-check.ts';
import { type ClusterName, clusterName, nodeName } from '#shared/eviction/identity.ts';
import { EVICTING_PERMISSIONS, permissionText, RELAY_PERMISSIONS } from '#shared/kubernetes/permissions.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import type { Access, ClusterRegistry, Part, RegisteredCluster } from '#shared/state/registry.ts';
import { StoreError } from '#shared/state/store.ts';
import { aNode, someRecords } from '#test/contracts/partition-builders.ts';
import { type Answer, json, scriptedServer } from '#test/unit/kubernetes/scripted-server.ts';
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

/** The command line on a registry with these clusters, whose API servers all give the same answer. */
const commandLine = (t: TestContext, answer: Answer, ...clusters: RegisteredCluster[]) =>
  commandLineOf(t, {}, answer, ...clusters);

/** The same command line on a fleet with some of its parts replaced. */
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
    replace: async (cluster) => {
      content.set(cluster.name, cluster);
      return 'replaced';
    },
    remove: async (name) => (content.delete(name) ? 'removed' : 'unknown'),
  };
  const clock = new DrivenClock(NOW);
  /** The clusters that evict was asked about. By default, it has all permissions. */
  const questions: string[] = [];
  const checkAccess: Fleet['checkAccess'] = async (question) => {
    questions.push(question.name);
    return parts.checkAccess?.(question) ?? { reached: true, missing: [] };
  };
  const { fleet, rulesStore, store } = embeddedFleet(
    t,
    { clusters: [], clock },
    { kind: 'deployed', registry, ...parts, checkAccess },
  );
  const output = plainOutput();
  const connected: Part[] = [];
  const state = Object.assign(output.state, { complaint: '', tables: [] as (string | undefined)[] });
  const program = createProgram({
    fleet: async ({ table }) => {
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
    (await rulesStore.audit({ from: 0, to: NOW * 2 })).map(({ kind, cluster, actor: who, message: what }) => [
      kind,
      cluster,
      who,
      what,
    ]);
  return { run, state, content, strays, requests, host, rulesStore, store, connected, audited, questions };
}

const ADD = ['clusters', 'add', 'prod', '--eks', 'prod', '--region', 'eu-west-1'];

test('registers a cluster that evict reaches and that grants the permissions', async (t) => {
  const { run, state, content, questions } = await commandLine(t, allowAll);
  await run(...ADD);
  assert.deepEqual([...content.values()], [registered('prod')]);
  assert.match(
    state.printed,
    /^Registered cluster prod\. .*\nConnection and permissions of evict are verified\. .*\nThe cluster is in observe mode: .*\n$/,
  );
  assert.deepEqual(questions, ['prod']);
});

const BY_AGENT = ['clusters', 'add', 'closed', '--agent', 'edge-1'];

test("registers a cluster with an agent without connecting, if the agent's queue exists, and prints how to start the agent", async (t) => {
  const questions: string[] = [];
  const hasAgent = async (agent: string) => questions.push(agent) > 0;
  const { run, state, content, requests } = await commandLineOf(t, { hasAgent }, allowAll);
  await run(...BY_AGENT);
  assert.deepEqual([...content.values()], [registered('closed', { kind: 'agent', agent: 'edge-1' })]);
  assert.deepEqual(questions, ['edge-1']);
  assert.deepEqual(requests, []);
  assert.match(
    state.printed,
    /\nThe queue of agent edge-1 exists\. .*\n.*\nOnly agent edge-1 works in this cluster\. Run the agent there, with CLUSTER=closed \(docs\/how-to\/run-an-agent\.md\)\.\n$/,
  );
  state.printed = '';
  await run('clusters', 'list');
  assert.match(state.printed, /\nclosed .* agent edge-1, in the cluster\n/);
});

test('rejects a cluster of an undeployed agent unless --no-check is given', async (t) => {
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

test("rejects names that would extend an agent's permissions to other clusters, for clusters with an agent only", async (t) => {
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

test("reports the policy that was applied earlier under the cluster's name", async (t) => {
  const { run, state, rulesStore } = await commandLine(t, allowAll);
  const operator = { rulesStore, clock: new DrivenClock(NOW), actor: 'anna' };
  await perform({ kind: 'apply-policy', cluster: clusterName('prod'), text: 'mode: enforce' }, operator);
  await run(...ADD);
  assert.match(state.printed, /\nThe policy applied earlier under this name is in force: enforce\.\n$/);
});

const answering = (answer: AccessAnswer): Partial<Fleet> => ({ checkAccess: async () => answer });

test("rejects a cluster where evict lacks a permission, whatever the caller's are, and names it", async (t) => {
  for (const right of EVICTING_PERMISSIONS.map(permissionText)) {
    const { run, content, questions } = await commandLineOf(
      t,
      answering({ reached: true, missing: [right] }),
      allowAll,
    );
    await assert.rejects(run(...ADD), {
      name: 'CliError',
      message: `evict lacks permissions that the service needs: ${right}. Grant them with the roles in cdk/rbac, in all namespaces unless one is named. To skip the check, specify --no-check.`,
    });
    assert.deepEqual([content.size, questions], [0, ['prod']]);
  }
});

test('rejects a cluster that evict cannot access although the caller can, with the reason once', async (t) => {
  const reason = 'Cannot review access at prod (401): the credentials were rejected.';
  const { run, content, questions } = await commandLineOf(t, answering({ reached: false, reason }), allowAll);
  await assert.rejects(run(...ADD), {
    name: 'CliError',
    message: `evict cannot work in the cluster: ${reason} Fix the cause (docs/how-to/grant-cluster-access.md). To skip the check, specify --no-check.`,
  });
  assert.deepEqual([content.size, questions.length], [0, 1]);
});

test('rejects a cluster if evict cannot be asked', async (t) => {
  const checkAccess = () => Promise.reject(new FleetError('Check your permission lambda:InvokeFunction.'));
  const { run, content, state } = await commandLineOf(t, { checkAccess }, allowAll);
  await assert.rejects(run(...ADD), {
    name: 'CliError',
    message: /^The permissions of evict are not verified: .* lambda:InvokeFunction\. .* --no-check\.$/,
  });
  assert.doesNotMatch(state.printed, /are verified/);
  assert.equal(content.size, 0);
});

const ROLE = (part: string) => `arn:aws:iam::210987654321:role/taintward-${part}`;
const WITH_ROLES = [...ADD, '--relay-role-arn', ROLE('relay'), '--evict-role-arn', ROLE('evict')];

test('requires the permissions of the relay from evict only if both are the same user', async (t) => {
  const missing = RELAY_PERMISSIONS.map(permissionText).filter((right) => right !== 'list pods');
  const parts = answering({ reached: true, missing });
  const apart = await commandLineOf(t, parts, allowAll);
  await apart.run(...ADD);
  await apart.run(...WITH_ROLES.with(2, 'apart'));
  assert.equal(apart.content.size, 2);
  const shared = await commandLineOf(t, parts, allowAll);
  await assert.rejects(shared.run(...ADD, '--role-arn', ROLE('access')), {
    message: /^evict lacks permissions .*: list nodes, watch nodes, watch pods\. /,
  });
});

test("requires the permissions that the cluster's policy needs", async (t) => {
  const parts = answering({ reached: true, missing: ['create pods/eviction', 'get replicasets'] });
  const { run, content, rulesStore } = await commandLineOf(t, parts, allowAll);
  const operator = { rulesStore, clock: new DrivenClock(NOW), actor: 'anna' };
  await perform(
    { kind: 'apply-policy', cluster: clusterName('prod'), text: 'mode: observe\nmethod: evict' },
    operator,
  );
  await assert.rejects(run(...ADD), { message: /^evict lacks .* needs: create pods\/eviction\. / });
  await run(...ADD.with(2, 'other'));
  assert.equal(content.size, 1);
});

test('registers roles of relay and evict, and checks that of evict', async (t) => {
  const { run, content, connected, questions } = await commandLine(t, allowAll);
  await run(...WITH_ROLES);
  assert.deepEqual(content.get(clusterName('prod'))?.access, {
    ...EKS,
    role: { relay: { arn: ROLE('relay') }, evict: { arn: ROLE('evict') } },
  });
  assert.deepEqual([connected, questions], [[], ['prod']]);
});

const resets: Answer = (response) => response.destroy();

test('registers a cluster without permission to read node Leases and prints a hint', async (t) => {
  const missing = ['get leases in kube-node-lease'];
  const { run, content, state } = await commandLineOf(t, answering({ reached: true, missing }), allowAll);
  await run(...ADD);
  assert.equal(content.size, 1);
  assert.match(
    state.printed,
    /\nGrant get leases in kube-node-lease \(cdk\/rbac\/evict\)\. Otherwise, pods are evicted/,
  );
});

test('checks a context of a kubeconfig file with its credentials, and does not ask evict', async (t) => {
  const add = ['clusters', 'add', 'kind', '--context', 'kind'];
  const broken = await commandLine(t, resets);
  await assert.rejects(broken.run(...add), { name: 'CliError', message: /connection was reset/ });
  const { run, state, questions } = await commandLine(t, allowAll);
  await run(...add);
  assert.match(state.printed, /\nThe credentials have all permissions that the service needs\. To check /);
  assert.doesNotMatch(state.printed, /evict are verified/);
  assert.deepEqual([...broken.questions, ...questions], []);
});

test('skips all checks with --no-check and prints that', async (t) => {
  const { run, state, content, requests, questions } = await commandLine(t, resets);
  await run(...ADD, '--no-check');
  assert.deepEqual([content.size, requests.length, questions.length], [1, 0, 0]);
  assert.match(state.printed, /\nConnection and permissions were not checked\. /);
});

test('rejects an existing name before any request to the cluster', async (t) => {
  const { run, content, requests } = await commandLine(
    t,
    allowAll,
    registered('prod', { ...EKS, region: 'x' }),
  );
  await assert.rejects(run(...ADD), { name: 'CliError', message: /^Cluster "prod" already exists\. / });
  assert.deepEqual(content.get(clusterName('prod'))?.access, { ...EKS, region: 'x' });
  assert.equal(requests.length, 0);
});

test("warns that deployed functions can't use a kubeconfig context", async (t) => {
  const { run, state } = await commandLine(t, allowAll);
  await run('clusters', 'add', 'kind', '--context', 'kind');
  assert.match(state.printed, /\nOnly processes with access to its kubeconfig file can reach the cluster/);
});

test('rejects an invalid cluster name', async (t) => {
  const { run, state } = await commandLine(t, allowAll);
  for (const name of ['CLUSTER', 'LEASE', 'RATE', 'a#b', 'a b', '', 'x'.repeat(201)]) {
    state.complaint = '';
    await assert.rejects(run('clusters', 'show', name), { code: 'commander.invalidArgument' }, name);
    assert.match(
      state.complaint,
      /^error: command-argument value '.*' is invalid for argument 'name'\. It must /,
    );
  }
});

test('lists clusters in aligned columns with their access', async (t) => {
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

test('reports invalid registrations and lists the clusters', async (t) => {
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

test('prints JSON for programs', async (t) => {
  const { run, state } = await commandLine(t, allowAll, registered('prod'));
  const expected = { name: 'prod', access: EKS, addedAt: '2026-11-21T12:00:00.000Z' };
  await run('clusters', 'list', '--output', 'json');
  assert.deepEqual(JSON.parse(state.printed), [expected]);
  state.printed = '';
  await run('clusters', 'show', 'prod', '-o', 'json');
  assert.deepEqual(JSON.parse(state.printed), expected);
});

test('prints how to register a cluster when none is registered', async (t) => {
  const { run, state } = await commandLine(t, allowAll);
  await run('clusters', 'list');
  assert.match(state.printed, /^No clusters are registered\. To register one, run taintward clusters add/);
});

test('shows and removes a cluster by name', async (t) => {
  const { run, state, content } = await commandLine(t, allowAll, registered('prod'), registered('other'));
  await run('clusters', 'show', 'prod');
  assert.match(state.printed, /^NAME +prod\nADDED +2026-11-21T12:00:00\.000Z\nACCESS +EKS cluster prod/);
  await run('clusters', 'remove', 'prod');
  assert.match(state.printed, /Removed cluster prod from the registry/);
  assert.deepEqual([...content.keys()], ['other']);
});

test('audits who registered and who removed a cluster', async (t) => {
  const { run, audited } = await commandLine(t, allowAll);
  await run(...ADD);
  await run('clusters', 'remove', 'prod');
  assert.deepEqual((await audited()).toSorted(), [
    ['cluster-added', 'prod', 'anna', 'registered the cluster: EKS cluster prod in eu-west-1'],
    ['cluster-removed', 'prod', 'anna', 'removed the cluster from the registry'],
  ]);
});

test("registers a cluster with a warning when the audit log can't be written", async (t) => {
  const operator = () => Promise.reject(new FleetError('Nobody knows who you are.'));
  const { run, state, content } = await commandLineOf(t, { operator }, allowAll);
  await run(...ADD);
  assert.equal(content.size, 1);
  assert.equal(
    state.complaint,
    'Fleet: a test\nThe audit log has no entry that you registered the cluster: EKS cluster prod in eu-west-1. Nobody knows who you are.\n',
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

  test('is removed with --yes, which prints the losses', async (t) => {
    const { run, state, content } = await withPending(t);
    await run('clusters', 'remove', 'prod', '--yes');
    assert.match(state.printed, loss);
    assert.equal(content.size, 0);
  });

  test('is not removed without a terminal', async (t) => {
    const { run, state, content } = await withPending(t);
    await assert.rejects(run('clusters', 'remove', 'prod'), {
      name: 'CliError',
      message: /^Cannot prompt: .* rerun with --yes\.$/,
    });
    assert.match(state.printed, loss);
    assert.equal(content.size, 1);
  });

  test("is not removed without --yes when its evictions can't be counted", async (t) => {
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

test('rejects show and remove for an unknown cluster', async (t) => {
  const { run } = await commandLine(t, allowAll);
  for (const command of ['show', 'remove']) {
    await assert.rejects(run('clusters', command, 'prod'), {
      name: 'CliError',
      message: 'Cluster "prod" not found. Run "taintward clusters list".',
    });
  }
});

test('uses the table that --table names', async (t) => {
  const { run, state } = await commandLine(t, allowAll);
  await run('clusters', 'list');
  await run('clusters', 'list', '--table', 'other');
  await run('--table', 'another', 'clusters', 'list');
  assert.deepEqual(state.tables, [undefined, 'other', 'another']);
});

test('rejects a cluster that is managed under another name, and names both', async (t) => {
  const claims = new Map([[clusterName('main'), { uids: { system: 's1', nodes: [] } }]]);
  const leases = { read: async (name: ClusterName) => claims.get(name) } as unknown as Fleet['leases'];
  const both = /prod and main are the same cluster, which is managed as main/;
  const main = registered('main');
  const evict = (system: string) => answering({ reached: true, missing: [], uids: { system, nodes: [] } });
  const { run, content } = await commandLineOf(t, { leases, ...evict('s1') }, allowAll, main);
  await assert.rejects(run(...ADD), { name: 'CliError', message: both });
  assert.deepEqual([...content.keys()], ['main']);
  const other = await commandLineOf(t, { leases, ...evict('s2') }, allowAll, main);
  await other.run(...ADD);
  assert.equal(other.content.size, 2);
});

test('rejects a context of a cluster that is managed under another name', async (t) => {
  const uids = { system: 's1', nodes: [] };
  const leases = { read: async () => ({ uids }) } as unknown as Fleet['leases'];
  const answer: Answer = (response, request) =>
    (request.method === 'GET' ? json({ metadata: { uid: 's1' } }) : allowAll)(response, request);
  const { run, content } = await commandLineOf(t, { leases }, answer, registered('main'));
  await assert.rejects(run('clusters', 'add', 'prod', '--context', 'prod', '--kubeconfig', '/k'), {
    name: 'CliError',
    message: /prod and main are the same cluster/,
  });
  assert.equal(content.size, 1);
});
