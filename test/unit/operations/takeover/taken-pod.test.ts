import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { movePods } from '#functions/cli/takeover/move-pods.ts';
import { parseInt64Json } from '#shared/kubernetes/http/api-json.ts';
import { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { projectTakenPod } from '#shared/operations/takeover/taken-pod.ts';
import { json, scriptedServer, status } from '#test/unit/kubernetes/scripted-server.ts';

const MOVING = 'taintward.dev/takeover-in-progress';
/** Annotation of releases before it was renamed. */
const FORMER = 'taintward.dev/takeover-moving';
const podWith = (annotations: object, tolerations: readonly object[] = []) => ({
  metadata: { namespace: 'shop', name: 'web-0', resourceVersion: '5', annotations },
  spec: { nodeName: 'n1', tolerations },
});

describe('a pod between two patches', () => {
  test('is completed from its annotation', () => {
    const next = { tolerations: [{ key: 'a', tolerationSeconds: 60 }], note: 'a=60+3600' };
    for (const name of [MOVING, FORMER]) {
      const { moving, movingBy } = projectTakenPod(podWith({ [name]: JSON.stringify(next) }));
      assert.deepEqual([moving, movingBy], [next, [name]]);
    }
  });

  test('is completed from the current annotation if it also has the former one', () => {
    const [next, other] = ['a=60+3600', 'b=1+2'].map((note) => ({ tolerations: [], note }));
    const { moving, movingBy } = projectTakenPod(
      podWith({ [FORMER]: JSON.stringify(other), [MOVING]: JSON.stringify(next) }),
    );
    assert.deepEqual([moving, movingBy], [next, [MOVING, FORMER]]);
  });

  for (const text of ['{', 'null', '7', '{"tolerations":"x"}', '{"note":"x"}']) {
    test(`is not recognized with the annotation ${text}, which Taintward never writes`, () => {
      assert.equal(projectTakenPod(podWith({ [MOVING]: text })).moving, undefined);
    });
  }
});

test("excludes Taintward's own pods and pods that opted out", () => {
  const labelled = (labels: object) => ({ metadata: { labels } });
  for (const [untouchable, labels] of [
    [true, { 'app.kubernetes.io/name': 'taintward' }],
    [true, { 'taintward.dev/takeover': 'disabled' }],
    [true, { 'taintward.dev/takeover': 'off' }],
    [false, { 'app.kubernetes.io/name': 'web', 'taintward.dev/takeover': 'enabled' }],
    [false, {}],
  ] as const)
    assert.equal(projectTakenPod(labelled(labels)).untouchable, untouchable, JSON.stringify(labels));
});

test('moves a pod with int64 toleration seconds by exact patches', async (t) => {
  const pod = projectTakenPod(
    parseInt64Json(
      '{"metadata":{"namespace":"shop","name":"web-0"},"spec":{"nodeName":"n1","tolerations":[{"key":"a","tolerationSeconds":9223372036854775807}]}}',
    ),
  );
  const { connection, requests } = await scriptedServer(t, (response, request) =>
    (request.method === 'GET' ? status(404, 'NotFound', 'pods "web-0" not found') : json({}))(
      response,
      request,
    ),
  );
  const objects = new ClusterObjects(connection);
  t.after(() => objects.close());
  const pods = (async function* () {
    yield pod;
  })();
  const wanted = () => ({ ...pod.state, note: 'a=1+2' });
  const moves = await movePods(objects, pods, new Set(['n1']), () => undefined, wanted);
  assert.deepEqual([...moves.failed], []);
  const [patch] = requests;
  assert.match(patch?.body ?? '', /"tolerationSeconds":9223372036854775807/);
  assert.match(patch?.body ?? '', /tolerationSeconds\\":9223372036854775807/);
});
