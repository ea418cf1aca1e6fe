import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { z } from 'zod';
import { taintward } from '#test/transcripts/transcript.ts';
import { AccessReview, Account, type Rule } from './rig/account.ts';
import { fileStage } from './rig/file-stage.ts';
import { operatorAccount } from './rig/operator-account.ts';
import { ServiceProcess } from './rig/service-process.ts';
import { CONTEXT } from './rig/stage.ts';
import { until } from './rig/until.ts';

const PAGE = join(import.meta.dirname, '../../docs/reference/permissions.md');
const RBAC = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';
/** The API groups of resources that are not in the core group. */
const GROUPS: Readonly<Record<string, string>> = {
  deployments: 'apps',
  replicasets: 'apps',
  statefulsets: 'apps',
  daemonsets: 'apps',
  jobs: 'batch',
};
/** The bindings of the ClusterRoles that let a user read the version. */
const VERSION_READERS = ['system:discovery', 'system:public-info-viewer'];
/** The bindings of the ClusterRoles that the page calls optional. */
const OPTIONAL = ['system:basic-user', ...VERSION_READERS];
const GUARDLESS = 'mode: enforce\nguard: off\n';

const stage = fileStage('bare');

/** Returns the permissions that the page's table lists for something, one verb each. */
function listedFor(what: string): readonly Rule[] {
  const [, section = ''] = readFileSync(PAGE, 'utf8').split('## In a cluster\n');
  const row = section.split('\n').find((line) => line.startsWith('| ') && line.split('|')[1]?.includes(what));
  const cell = row?.split('|')[2] ?? assert.fail(`the page lists nothing for ${what}`);
  const names = (words: string) => [...words.matchAll(/`([\w/]+)`/g)].flatMap(([, name]) => name ?? []);
  const rules = cell.split(';').flatMap((part) => {
    const [verbs = '', ...resources] = part.split(' on ');
    return names(resources.join()).flatMap((resource) =>
      names(verbs).map((verb) => ({ resource, group: GROUPS[resource] ?? '', verbs: [verb] })),
    );
  });
  assert.notEqual(rules.length, 0, cell);
  return rules;
}

const OBSERVE = listedFor('observe mode');
const EXPLAIN = listedFor('`explain`');
const ENFORCE = listedFor('enforce mode');
const EVICT = listedFor('`method: evict`');
const PERCENT = listedFor('as a percentage');

const text = ({ verbs, resource }: Rule): string => `${verbs} ${resource}`;

/** Returns the permissions without each of them in turn. */
const eachWithout = (rules: readonly Rule[]) =>
  rules.map((left) => [text(left), rules.filter((rule) => rule !== left)] as const);

let accounts = 0;

/** Creates an account with these permissions in the whole cluster, and `there` in the suite's namespace alone. */
async function userWith(rules: readonly Rule[], there: readonly Rule[] = []) {
  const { cluster, writeKubeconfig } = stage();
  const name = `user-${++accounts}`;
  const account = await Account.create(cluster, name, rules);
  if (there.length > 0) await account.grantIn(cluster.namespace, there);
  const kubeconfig = await writeKubeconfig.call(stage(), name, cluster.connection, account.token);
  /** Runs a command as this user. */
  const run = (...args: readonly string[]) =>
    taintward(...args, '--context', CONTEXT, '--kubeconfig', kubeconfig);
  const policyFile = (policy: string | false) => policy !== false && stage().write(`${name}.yaml`, policy);
  /** Runs `npm start`, which must be ready. */
  const start = (policy: string | false) => stage().start({ kubeconfig, policy: policyFile(policy) });
  /** Runs `npm start`, which must refuse; returns its error. */
  const refused = async (policy: string | false): Promise<string> => {
    const contexts = [CONTEXT];
    const options = { kubeconfig, contexts, stateDir: stage().newStateDir(), policy: policyFile(policy) };
    const service = await ServiceProcess.spawn(options);
    const { code, stderr } = await until('npm start ends', () => service.ended);
    assert.equal(code, 1, stderr);
    return stderr;
  };
  return { run, start, refused };
}

/** Creates a node with pods, which are `owned` by a ReplicaSet of as many if so; returns both, and how to taint it. */
async function nodeWith(t: TestContext, pods: number, owned = false) {
  const { cluster } = stage();
  const name = `n-${++accounts}`;
  const node = await cluster.addNode(name);
  // Another test's service would evict its pods, too.
  t.after(() => cluster.deleteNode(node));
  const lives = await Promise.all(
    Array.from({ length: pods }, (_, index) =>
      cluster.addPod(node, `${name}-${index}`, { labels: { app: name } }),
    ),
  );
  if (owned) {
    const spec = {
      replicas: pods,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { schedulerName: 'none', containers: [{ name: 'c', image: 'busybox' }] },
      },
    };
    const sets = `/apis/apps/v1/namespaces/${cluster.namespace}/replicasets`;
    const made = await cluster.api.create(sets, { metadata: { name }, spec });
    const { uid } = z.object({ metadata: z.object({ uid: z.string() }) }).parse(made).metadata;
    const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid, controller: true };
    for (const pod of lives)
      await cluster.api.patch(cluster.podPath(pod.name), { metadata: { ownerReferences: [owner] } });
  }
  const taint = () => cluster.taint(node, { key: 'x' });
  const evicted = () => lives.filter(({ evictedAt }) => evictedAt !== undefined).length;
  return { node, pods: lives, taint, evicted };
}

const Finding = z.object({ check: z.string(), verdict: z.enum(['ok', 'warn', 'bad']), message: z.string() });

const Entries = z.array(
  z.object({
    node: z.string(),
    event: z.string().optional(),
    error: z.string().optional(),
    held: z.unknown().optional(),
  }),
);

/** Returns the verdicts of `doctor -o json` by its checks. */
const verdicts = (out: string) =>
  Object.groupBy(z.array(Finding).parse(JSON.parse(out)), ({ check }) => check);

/**
 * Deletes bindings, {@link VERSION_READERS} last, which apply to all users; returns what restores them. Resolves when the
 * API server applies all of this: it does so in order.
 */
async function unbound(bindings: readonly string[]): Promise<() => Promise<void>> {
  const { api } = stage().cluster;
  const saved: object[] = [];
  for (const name of bindings) {
    const { roleRef, subjects } = z
      .object({ roleRef: z.looseObject({}), subjects: z.array(z.unknown()) })
      .parse(await api.read(`${RBAC}/${name}`));
    saved.push({ metadata: { name }, roleRef, subjects });
    await api.remove(`${RBAC}/${name}`);
  }
  await until('nobody may read the version', async () => {
    const review = await api.create('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: 'somebody',
        groups: ['system:authenticated'],
        nonResourceAttributes: { verb: 'get', path: '/version' },
      },
    });
    return !AccessReview.parse(review).status.allowed;
  });
  return async () => {
    for (const binding of saved) await api.create(RBAC, binding);
  };
}

describe('without the optional ClusterRoles, exactly the listed permissions are enough', () => {
  let bind: () => Promise<void>;
  before(async () => {
    bind = await unbound(OPTIONAL);
  });
  after(() => bind());

  test('for doctor', async () => {
    const { run } = await userWith(OBSERVE);
    const { code, out } = await run('doctor', '-o', 'json');
    const { connection, permissions } = verdicts(out);
    assert.deepEqual([connection?.[0]?.verdict, permissions?.[0]?.verdict], ['ok', 'warn']);
    assert.equal(code, 0, out);
  });

  test('for npm start in observe mode', async (t) => {
    const { start } = await userWith(OBSERVE);
    const { taint, evicted } = await nodeWith(t, 1);
    const service = await start(false);
    await taint();
    await until('history shows the pod', async () => {
      const { out } = await taintward('history', '--state-dir', service.stateDir, '-o', 'json');
      return Entries.parse(JSON.parse(out)).some(({ event }) => event === 'would-evict');
    });
    assert.equal(evicted(), 0);
    assert.equal(service.printed('cluster.permissions-unverified').length, 1);
  });

  test('for explain and what-if', async (t) => {
    const { run } = await userWith(EXPLAIN);
    const { node, pods, taint } = await nodeWith(t, 1);
    const whatIf = await run('what-if', '--taint', 'x:NoExecute', '--nodes', node, '-o', 'json');
    assert.equal(whatIf.code, 2, whatIf.err);
    assert.equal(JSON.parse(whatIf.out).now, 1);
    await taint();
    const explained = await run(
      'explain',
      'pod',
      `${stage().cluster.namespace}/${pods[0]?.name}`,
      '-o',
      'json',
    );
    assert.equal(explained.code, 0, explained.err);
    const whole = await run('explain', 'node', node, '-o', 'json');
    assert.equal(whole.code, 0, whole.err);
  });

  test('for npm start in enforce mode', async (t) => {
    const { start } = await userWith([...OBSERVE, ...ENFORCE]);
    const { pods, taint, evicted } = await nodeWith(t, 2);
    const service = await start(GUARDLESS);
    await taint();
    await until('the pods are evicted', () => evicted() === 2);
    assert.ok(pods.every(({ disruption }) => disruption?.beforeDeletion));
    // Events are optional: the missing permission is logged once, and not for each pod.
    await service.untilPrinted('event.dropped');
    assert.equal(service.printed('event.dropped').length, 1);
  });

  test('for method: evict', async (t) => {
    const { start } = await userWith([...OBSERVE, ...ENFORCE, ...EVICT]);
    const { taint, evicted } = await nodeWith(t, 1);
    await start(`${GUARDLESS}method: evict\n`);
    await taint();
    await until('the pod is evicted', () => evicted() === 1);
  });

  test('for maxEvictionsPerWorkload as a percentage', async (t) => {
    const { start } = await userWith([...OBSERVE, ...ENFORCE, ...PERCENT]);
    const { taint, evicted } = await nodeWith(t, 4, true);
    await start(`${GUARDLESS}maxEvictionsPerWorkload: { count: 50%, window: 10m }\n`);
    await taint();
    await until('half of the pods are evicted', () => evicted() === 2);
  });

  test('for enforce mode, with RoleBindings in the namespaces of include', async (t) => {
    const { start } = await userWith(OBSERVE, [...ENFORCE, ...EVICT]);
    const { taint, evicted } = await nodeWith(t, 1);
    await start(`${GUARDLESS}method: evict\n${inNamespaces(stage().cluster.namespace)}`);
    await taint();
    await until('the pod is evicted', () => evicted() === 1);
  });
});

const inNamespaces = (...namespaces: readonly string[]) => `include: [{ namespaces: [${namespaces}] }]\n`;

describe('each listed permission is needed', () => {
  test('for npm start in observe mode, and doctor', async () => {
    for (const [left, rules] of eachWithout(OBSERVE)) {
      const { run, refused } = await userWith(rules);
      assert.match(await refused(false), new RegExp(`: ${left}\\.`));
      const { code, out } = await run('doctor', '-o', 'json');
      assert.equal(code, 2, left);
      assert.ok(
        verdicts(out)['permissions']?.some(({ verdict }) => verdict === 'bad'),
        left,
      );
    }
  });

  test('for explain or what-if', async (t) => {
    const { node, pods } = await nodeWith(t, 1);
    for (const [left, rules] of eachWithout(EXPLAIN)) {
      const { run } = await userWith(rules);
      const codes = [
        await run('what-if', '--taint', 'x:NoExecute', '--nodes', node),
        await run('explain', 'node', node),
        await run('explain', 'pod', `${stage().cluster.namespace}/${pods[0]?.name}`),
      ].map(({ code }) => code);
      assert.notDeepEqual(codes, [2, 0, 0], left);
    }
  });

  test('for npm start in enforce mode', async () => {
    for (const [left, rules] of eachWithout(ENFORCE)) {
      const { refused } = await userWith([...OBSERVE, ...rules]);
      assert.match(await refused(GUARDLESS), new RegExp(`: ${left}\\.`));
    }
  });

  test('in each namespace of include', async () => {
    const there = stage().cluster.namespace;
    for (const [left, rules] of eachWithout(ENFORCE)) {
      const { refused } = await userWith(OBSERVE, rules);
      assert.match(await refused(GUARDLESS + inNamespaces(there)), new RegExp(`: ${left} in ${there}\\.`));
    }
    const { refused } = await userWith(OBSERVE, ENFORCE);
    assert.match(
      await refused(GUARDLESS + inNamespaces(there, 'default')),
      /: delete pods in default, patch pods\/status in default\./,
    );
    await refused(GUARDLESS);
  });

  for (const [what, setting, listed] of [
    ['method: evict', 'method: evict\n', EVICT],
    [
      'maxEvictionsPerWorkload as a percentage',
      'maxEvictionsPerWorkload: { count: 50%, window: 10m }\n',
      PERCENT,
    ],
  ] as const)
    test(`for ${what}, without which no pod is evicted`, async (t) => {
      for (const [left, rules] of eachWithout(listed)) {
        const { start } = await userWith([...OBSERVE, ...ENFORCE, ...rules]);
        const service = await start(GUARDLESS + setting);
        await service.untilPrinted('policy.permission-missing', left);
        await service.kill();
      }
      const { start } = await userWith([...OBSERVE, ...ENFORCE]);
      const { node, taint, evicted } = await nodeWith(t, 2, true);
      const service = await start(GUARDLESS + setting);
      await taint();
      await until('both pods wait', async () => {
        const { out } = await taintward('pending', '--state-dir', service.stateDir, '-o', 'json');
        const waiting = Entries.parse(JSON.parse(out)).filter((each) => each.node === node);
        return waiting.length === 2 && waiting.every(({ error, held }) => error ?? held);
      });
      assert.equal(evicted(), 0);
    });
});

test('doctor and status report no missing permission of RoleBindings in the namespaces of include', async () => {
  const { start } = await userWith(OBSERVE, [...ENFORCE, ...EVICT]);
  const service = await start(`${GUARDLESS}method: evict\n${inNamespaces(stage().cluster.namespace)}`);
  const doctor = await taintward('doctor', '--state-dir', service.stateDir, '-o', 'json');
  assert.equal(verdicts(doctor.out)['permissions']?.[0]?.verdict, 'ok', doctor.out);
  const status = await taintward('status', '--state-dir', service.stateDir);
  assert.equal(status.code, 0, status.out);
});

test('takeover apply needs no discovery', async (t) => {
  const { cluster } = stage();
  const { token } = await operatorAccount(cluster, 'admin');
  const kubeconfig = await stage().writeKubeconfig('admin', cluster.connection, token);
  t.after(await unbound(VERSION_READERS));
  const reach = ['--context', CONTEXT, '--kubeconfig', kubeconfig];
  const { code, out, err } = await taintward('takeover', 'apply', '--dry-run', '-o', 'json', ...reach);
  assert.equal(code, 0, err);
  assert.match(out, /MutatingAdmissionPolicyBinding taintward-takeover-nodes/);
});
