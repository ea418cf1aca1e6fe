import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { PodUid } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { Account, MIN_PERMISSIONS } from '#test/cluster/rig/account.ts';
import { AdminApi } from '#test/cluster/rig/admin-api.ts';
import { deployed } from '#test/cluster/rig/installed-kinds.ts';
import { evictedOnTime } from '#test/cluster/rig/on-time.ts';
import { CONTEXT, Stage } from '#test/cluster/rig/stage.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';
import { loadContexts } from '#test/world/load-contexts.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const COLLECTIONS: Readonly<Record<string, string>> = {
  ValidatingAdmissionPolicy: 'validatingadmissionpolicies',
  ValidatingAdmissionPolicyBinding: 'validatingadmissionpolicybindings',
};
/** The account of the manifests, and the suite's account in its place. */
const DEPLOYED = 'system:serviceaccount:taintward:taintward';
const NAME = 'evicter';

let stage: Stage;
let kubeconfig: string;
/** The service's own client, and a client of an attacker with the service's token. */
let service: RestApi;
let stolen: AdminApi;

before(async () => {
  stage = await Stage.open();
  const { cluster } = stage;
  const permissions = [...MIN_PERMISSIONS, { resource: 'pods/eviction', verbs: ['create'] }];
  const { token } = await Account.create(cluster, NAME, permissions);
  kubeconfig = await stage.writeKubeconfig(NAME, cluster.connection, token);
  const [context] = loadContexts({ kubeconfig, contexts: [CONTEXT] });
  assert.ok(context);
  service = new RestApi(context.connection);
  stolen = new AdminApi(context.connection);
  for (const object of objects()) await cluster.api.create(collectionOf(object), object);
  // The API server applies a policy shortly after its creation.
  const node = await cluster.addNode('probed');
  const pod = await cluster.addPod(node, 'probed');
  for (const call of [() => relabel(pod), () => deleted(pod)]) {
    await until('the policies are in force', async () => (await refusal(call)) !== undefined);
  }
});
after(async () => {
  for (const object of objects().toReversed()) {
    await stage.cluster.api.remove(`${collectionOf(object)}/${nameOf(object)}`);
  }
  service?.close();
  stolen?.close();
  await stage.close();
});

/** Returns the deployed policies for the suite's own account, under names of the suite's own. */
function objects() {
  const { namespace, run } = stage.cluster;
  const text = JSON.stringify(['admission-policy.yaml', 'admission-policy-nodes.yaml'].flatMap(deployed));
  const own = text
    .replaceAll(DEPLOYED, `system:serviceaccount:${namespace}:${NAME}`)
    .replaceAll('"taintward-in-cluster-', `"${run}-`);
  return (JSON.parse(own) as readonly unknown[]).map(fieldsOf);
}

const nameOf = (object: ReturnType<typeof fieldsOf>) => textOf(fieldsOf(object['metadata'])['name']);
const collectionOf = (object: ReturnType<typeof fieldsOf>) =>
  `${ADMISSION}/${COLLECTIONS[textOf(object['kind'])]}`;

/** Returns the message with which a policy denies a call; `undefined`: the call succeeded. */
async function refusal(call: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await call();
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && error.message.includes('ValidatingAdmissionPolicy'))
      return error.message;
    throw error;
  }
}

const path = ({ name }: Pick<PodLife, 'name'>) => stage.cluster.podPath(name);
const ref = ({ name }: PodLife) => ({ namespace: stage.cluster.namespace, name });
const relabel = (pod: PodLife) =>
  stolen.patch(`${path(pod)}/status`, { metadata: { labels: { stolen: 'yes' } } });
const deleted = (pod: PodLife, more: object = {}) =>
  stolen.remove(path(pod), { preconditions: { uid: pod.uid }, ...more });

async function podOn(name: string, taints: Parameters<Stage['cluster']['addNode']>[1] = []) {
  const node = await stage.cluster.addNode(name, taints);
  return stage.cluster.addPod(node, name, { tolerations: [{ operator: 'Exists' }] });
}

/**
 * Waits until the admission policy admits the call: the API server reads nodes from a cache that lags behind changes.
 */
async function refusedNoMore(call: () => Promise<unknown>): Promise<void> {
  await until('the API server goes by the taint', async () => (await refusal(call)) === undefined);
}

describe('the policy for the status of a pod', () => {
  let pod: PodLife;
  before(async () => {
    pod = await podOn('marked');
  });

  const condition = (type: string, more: object = {}) => ({
    type,
    status: 'True',
    reason: 'DeletionByTaintManager',
    message: 'x',
    lastTransitionTime: '2026-11-24T12:00:00Z',
    ...more,
  });

  test('admits the mark of an eviction, also a second time', async () => {
    for (const at of [Date.now(), Date.now() + 1_000]) {
      const live = await service.markDisrupted(ref(pod), pod.uid as PodUid, at);
      assert.equal(live.uid, pod.uid);
    }
    const { status } = fieldsOf(await stage.cluster.api.read(path(pod)));
    assert.match(JSON.stringify(status), /"reason":"DeletionByTaintManager"/);
  });

  for (const [what, status, message] of [
    ['another condition', { conditions: [condition('Ready', { status: 'False' })] }, /no condition .* but/],
    ['a condition of no type that is known', { conditions: [condition('Other')] }, /no condition .* but/],
    [
      'another reason of the mark',
      { conditions: [condition('DisruptionTarget', { reason: 'Other' })] },
      /only say of a pod/,
    ],
    [
      'that it is not to go after all',
      { conditions: [condition('DisruptionTarget', { status: 'False' })] },
      /only say of a pod/,
    ],
    ['another phase', { phase: 'Failed' }, /nothing of a pod's status/],
    ['an address', { podIP: '10.9.9.9', podIPs: [{ ip: '10.9.9.9' }] }, /nothing of a pod's status/],
  ] as const) {
    test(`denies ${what}`, async () => {
      const refused = await refusal(() => stolen.patchStatus(path(pod), status));
      assert.match(refused ?? 'it got in', message);
    });
  }

  test('denies changes of the metadata along with it', async () => {
    assert.match((await refusal(() => relabel(pod))) ?? 'it got in', /metadata/);
    const finalizers = { metadata: { finalizers: ['example.com/stolen'] } };
    const refused = await refusal(() => stolen.patch(`${path(pod)}/status`, finalizers));
    assert.match(refused ?? 'it got in', /metadata/);
  });
});

describe('the policy for deleting a pod', () => {
  const TAINT = { key: 'x', effect: 'NoExecute' } as const;

  test('admits it on a node with a NoExecute taint, by its UID', async () => {
    const pod = await podOn('deleted', [TAINT]);
    const preconditions = { uid: pod.uid as PodUid };
    await refusedNoMore(() => service.deletePod(ref(pod), preconditions));
    await until('it is gone', () => pod.evictedAt);
  });

  test('denies it without its UID, or without its grace period', async () => {
    const pod = await podOn('named', [TAINT]);
    assert.match((await refusal(() => stolen.remove(path(pod)))) ?? 'it is deleted', /by its UID/);
    const refused = await refusal(() => deleted(pod, { gracePeriodSeconds: 0 }));
    assert.match(refused ?? 'it is deleted', /grace period/);
  });

  test('admits it on a node with a NoSchedule taint for a node that is down, and with no other NoSchedule taint', async () => {
    const down = await podOn('down', [{ key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' }]);
    await refusedNoMore(() => deleted(down));
    const kept = await podOn('kept', [{ key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' }]);
    assert.match((await refusal(() => deleted(kept))) ?? 'it is deleted', /only of nodes with a taint/);
  });

  test('admits it once its node is deleted', async () => {
    const pod = await podOn('orphaned');
    assert.match((await refusal(() => deleted(pod))) ?? 'it is deleted', /only of nodes with a taint/);
    await stage.cluster.deleteNode(stage.cluster.nodeName('orphaned'));
    await refusedNoMore(() => deleted(pod));
  });
});

describe('the policy for the Eviction API', () => {
  test('admits a pod by its UID on any node, because an eviction does not name its node', async () => {
    const pod = await podOn('budgeted');
    assert.deepEqual(await service.evictPod(ref(pod), { uid: pod.uid as PodUid }), { kind: 'evicted' });
  });

  test('denies it without its UID, or without its grace period', async () => {
    const pod = await podOn('unnamed');
    const eviction = (deleteOptions: object) =>
      refusal(() =>
        stolen.create(`${path(pod)}/eviction`, {
          apiVersion: 'policy/v1',
          kind: 'Eviction',
          deleteOptions,
          metadata: ref(pod),
        }),
      );
    assert.match((await eviction({})) ?? 'it is evicted', /by its UID/);
    const preconditions = { uid: pod.uid };
    assert.match((await eviction({ preconditions, gracePeriodSeconds: 0 })) ?? 'it is evicted', /grace/);
  });
});

test('the policies do not apply to others who delete pods and write their status', async () => {
  const pod = await podOn('of-others');
  await stage.cluster.api.patch(`${path(pod)}/status`, { metadata: { labels: { mine: 'yes' } } });
  await stage.cluster.api.remove(path(pod), { gracePeriodSeconds: 0 });
});

for (const method of ['delete', 'evict']) {
  test(`pods are evicted on time under the policies (method: ${method})`, async () => {
    const { cluster } = stage;
    const text = `mode: enforce\nmethod: ${method}\nguard: { cluster: off, zone: off, customTaints: off }\n`;
    const running = await stage.start({ kubeconfig, policy: stage.write(`${method}.yaml`, text) });
    const node = await cluster.addNode(`evicted-${method}`);
    const [timed, now] = await Promise.all([
      cluster.addPod(node, `timed-${method}`, { tolerations: [tolerates('x', 3)] }),
      cluster.addPod(node, `now-${method}`),
    ]);
    const tainted = await cluster.taint(node, { key: 'x' });
    await until('the other one is evicted', () => now.evictedAt);
    await evictedOnTime(timed, 3, tainted);
    const gone = await cluster.addNode(`gone-${method}`);
    const orphan = await cluster.addPod(gone, `orphan-${method}`, { tolerations: [tolerates('x', 3)] });
    await cluster.taint(gone, { key: 'x' });
    await running.untilPrinted(orphan.name, 'eviction at');
    await cluster.deleteNode(gone);
    await until('the orphan is evicted', () => orphan.evictedAt);
    await running.stop();
  });
}
