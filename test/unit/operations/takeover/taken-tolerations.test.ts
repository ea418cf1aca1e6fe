import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { POD_TAKEOVER } from '#shared/operations/takeover/at-pods.ts';
import {
  restored,
  type TolerationJson,
  takenOver,
  timeless,
} from '#shared/operations/takeover/taken-tolerations.ts';

const takeover = { ...POD_TAKEOVER, keys: ['a', 'b'] };
const exists = (key: string, tolerationSeconds?: number): TolerationJson => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});
const untaken = (...tolerations: readonly TolerationJson[]) => ({ tolerations, note: '' });

describe('a pod with a takeover', () => {
  test('tolerates for longer where it had seconds, and its note contains both durations', () => {
    assert.deepEqual(takenOver(untaken(exists('a', 300), exists('b', 60)), takeover), {
      tolerations: [exists('a', 3900), exists('b', 3660)],
      note: 'a=300+3600,b=60+3600',
    });
  });

  test('tolerates for the fallback delay where it had no toleration', () => {
    assert.deepEqual(takenOver(untaken(exists('a', 300), exists('c')), takeover), {
      tolerations: [exists('b', 3600), exists('a', 3900), exists('c')],
      note: 'a=300+3600,b=0+3600',
    });
  });

  test('keeps a wildcard and tolerates each key for longer before it', () => {
    const wildcard = { operator: 'Exists', tolerationSeconds: 20 };
    assert.deepEqual(takenOver(untaken(wildcard), takeover), {
      tolerations: [exists('b', 3620), exists('a', 3620), wildcard],
      note: 'a=20+3600,b=20+3600',
    });
  });

  test('stays unchanged if it tolerates indefinitely or already has a takeover', () => {
    assert.equal(takenOver(untaken({ operator: 'Exists' }), takeover), undefined);
    const taken = takenOver(untaken(exists('a', 300)), takeover);
    assert.ok(taken);
    assert.equal(takenOver(taken, takeover), undefined);
  });

  test("is restored to its former tolerations, except those that can't be removed", () => {
    const before = untaken(exists('a', 300), exists('b', 60));
    assert.deepEqual(restored(takenOver(before, takeover) ?? before), before);
    const none = untaken();
    assert.deepEqual(restored(takenOver(none, takeover) ?? none), untaken(exists('b', 0), exists('a', 0)));
  });

  test('keeps seconds that were changed since', () => {
    const taken = { tolerations: [exists('a', 120), exists('b', 3660)], note: 'a=300+3600,b=60+3600' };
    assert.deepEqual(restored(taken), untaken(exists('a', 120), exists('b', 60)));
    assert.deepEqual(takenOver(taken, takeover), {
      tolerations: [exists('a', 3720), exists('b', 3660)],
      note: 'a=120+3600,b=60+3600',
    });
  });
});

test('between two patches, only the tolerations whose seconds change are indefinite', () => {
  const before = untaken(exists('c', 5), exists('a', 300));
  const after = takenOver(before, takeover);
  assert.ok(after);
  assert.deepEqual(timeless(before, after), [exists('b'), exists('c', 5), exists('a')]);
});

test('treats fractional seconds as indefinite', () => {
  assert.equal(takenOver(untaken(exists('a', 1.5), exists('b', 0.1)), takeover), undefined);
});
