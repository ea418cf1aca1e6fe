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
  test('has a pod go when it has borne a taint for as long as it may', () => {
    const model = tainted();
    assert.equal(model.goes(uid, 15_000, 100, sawAll)?.wrong, undefined);
    assert.match(model.goes(uid, 14_000, 100, sawAll)?.wrong ?? '', /stay for another 1000 ms/);
    assert.match(model.goes(uid, 40_000, 100, sawAll)?.wrong ?? '', /should have gone/);
  });

  test('has nothing go from a node that has lost its taints, but for what was seen just before', () => {
    const model = tainted();
    model.node(15_500, 'n1', []);
    assert.equal(model.goes(uid, 15_550, 100, sawAll)?.wrong, undefined);
    assert.match(model.goes(uid, 15_700, 100, sawAll)?.wrong ?? '', /nothing makes it go/);
  });

  test('starts a countdown anew when its taint comes back, or says that it was set anew', () => {
    const back = tainted();
    back.node(8_000, 'n1', []);
    back.node(9_000, 'n1', [TAINT]);
    assert.match(back.goes(uid, 15_000, 100, sawAll)?.wrong ?? '', /stay for another 4000 ms/);
    const anew = tainted();
    anew.node(8_400, 'n1', [{ ...TAINT, timeAdded: 8_000 }]);
    assert.match(anew.goes(uid, 15_000, 100, sawAll)?.wrong ?? '', /stay for another 3400 ms/);
    const late = tainted();
    late.node(9_500, 'n1', [{ ...TAINT, timeAdded: 8_000 }]);
    assert.match(late.goes(uid, 15_000, 100, sawAll)?.wrong ?? '', /stay for another 3999 ms/);
  });

  test('goes on with the countdown of a node that is deleted, and of pods that were there before', () => {
    const model = tainted();
    model.node(8_000, 'n1', undefined);
    assert.equal(model.goes(uid, 15_000, 100, sawAll)?.wrong, undefined);
  });

  test('does not know better than a service that could not see everything of a node that is gone', () => {
    const model = tainted();
    model.node(8_000, 'n1', undefined);
    assert.equal(model.goes(uid, 9_000, 100, { sawAll: false, healed }), undefined);
  });

  test('names pods that are still there and should have gone', () => {
    const model = tainted();
    assert.deepEqual(model.overdue(16_000, healed), []);
    assert.deepEqual(model.overdue(30_000, healed), [uid]);
    model.pod(31_000, { uid, node: 'n1', terminating: true, tolerations: TEN_SECONDS });
    assert.deepEqual(model.overdue(40_000, healed), []);
  });
});
