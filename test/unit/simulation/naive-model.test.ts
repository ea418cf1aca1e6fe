import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { podUid } from '#shared/eviction/identity.ts';
import { NaiveModel } from '#test/simulation/naive-model.ts';

const uid = podUid('p1');
const TAINT = { key: 'a', effect: 'NoExecute' };
const TEN_SECONDS = [{ key: 'a', operator: 'Exists', tolerationSeconds: 10n }];
const healed = (at: number) => at + 1_000;
const sawAll = { sawAll: true, healed };

function tainted(): NaiveModel {
  const model = new NaiveModel();
  model.node(0, 'n1', []);
  model.pod(1_000, { uid, node: 'n1', terminating: false, tolerations: TEN_SECONDS });
  model.node(5_000, 'n1', [TAINT]);
  return model;
}

describe('the naive model of a cluster', () => {
  test("expects a pod's eviction at the end of its tolerated time", () => {
    const model = tainted();
    assert.equal(model.goes(uid, 15_000, 100, sawAll)?.wrong, undefined);
    assert.match(model.goes(uid, 14_000, 100, sawAll)?.wrong ?? '', /stay for another 1000 ms/);
    assert.match(model.goes(uid, 40_000, 100, sawAll)?.wrong ?? '', /should have gone/);
  });

  test('expects no eviction from a node without taints, except shortly after the taints were removed', () => {
    const model = tainted();
    model.node(15_500, 'n1', []);
    assert.equal(model.goes(uid, 15_550, 100, sawAll)?.wrong, undefined);
    assert.match(model.goes(uid, 15_700, 100, sawAll)?.wrong ?? '', /nothing makes it go/);
  });

  test('restarts a countdown when its taint returns or has a new time', () => {
    const back = tainted();
    back.node(8_000, 'n1', []);
    back.node(9_000, 'n1', [TAINT]);
    assert.match(back.goes(uid, 15_000, 100, sawAll)?.wrong ?? '', /stay for another 4000 ms/);
    const retainted = tainted();
    retainted.node(8_400, 'n1', [{ ...TAINT, timeAdded: 8_000 }]);
    assert.match(retainted.goes(uid, 15_000, 100, sawAll)?.wrong ?? '', /stay for another 3400 ms/);
    const late = tainted();
    late.node(9_500, 'n1', [{ ...TAINT, timeAdded: 8_000 }]);
    assert.match(late.goes(uid, 15_000, 100, sawAll)?.wrong ?? '', /stay for another 3999 ms/);
  });

  test('continues the countdowns of a deleted node for pods that existed before', () => {
    const model = tainted();
    model.node(8_000, 'n1', undefined);
    assert.equal(model.goes(uid, 15_000, 100, sawAll)?.wrong, undefined);
  });

  test("accepts any decision of a service that couldn't see everything of a deleted node", () => {
    const model = tainted();
    model.node(8_000, 'n1', undefined);
    assert.equal(model.goes(uid, 9_000, 100, { sawAll: false, healed }), undefined);
  });

  test('lists overdue pods', () => {
    const model = tainted();
    assert.deepEqual(model.overdue(16_000, healed), []);
    assert.deepEqual(model.overdue(30_000, healed), [uid]);
    model.pod(31_000, { uid, node: 'n1', terminating: true, tolerations: TEN_SECONDS });
    assert.deepEqual(model.overdue(40_000, healed), []);
  });
});
