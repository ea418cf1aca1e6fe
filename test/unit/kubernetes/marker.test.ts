import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Marker } from '#shared/kubernetes/marker.ts';

const SINCE = Date.UTC(2026, 10, 21, 12);

/** A pod's JSON with these managers, each this number of seconds after the marker's start. */
const writtenBy = (...writers: readonly (readonly [manager: string, seconds: number])[]) => ({
  metadata: {
    managedFields: writers.map(([manager, seconds]) => ({
      manager,
      operation: 'Update',
      subresource: 'status',
      time: new Date(SINCE + seconds * 1000).toISOString(),
    })),
  },
});

/** Returns all conflicting installations that were not yet reported. */
function newsOf(marker: Marker): readonly string[] {
  const news = [];
  for (let rival = marker.takeRival(); rival; rival = marker.takeRival()) news.push(rival);
  return news;
}

describe('the managers of a pod', () => {
  test('reveal another installation, which is reported once', () => {
    const marker = new Marker('ours', SINCE);
    const pod = writtenBy(['kubelet', 1], ['taintward-ours', 1], ['taintward-theirs', 2]);
    marker.read(pod);
    marker.read(pod);
    assert.deepEqual(newsOf(marker), ['theirs']);
    marker.read(writtenBy(['taintward-theirs', 3], ['taintward-others', 3]));
    assert.deepEqual(newsOf(marker), ['others']);
  });

  test('reveal the installation that marked a pod last, by the local clock', () => {
    const marker = new Marker('ours', SINCE);
    assert.equal(marker.lastRival, undefined);
    marker.read(writtenBy(['taintward-theirs', 20], ['taintward-others', 10]));
    assert.deepEqual(marker.lastRival, { installation: 'theirs', markedAt: SINCE + 20_000 });
    marker.read(writtenBy(['taintward-others', 40]), 10_000);
    marker.read(writtenBy(['taintward-theirs', 5]));
    assert.deepEqual(marker.lastRival, { installation: 'others', markedAt: SINCE + 30_000 });
  });

  test('do not include kubelet, this or a former installation, or the built-in controller as conflicts', () => {
    const marker = new Marker('ours', SINCE);
    marker.read(writtenBy(['kubelet', 1], ['taintward-ours', 1], ['kube-controller-manager', 1]));
    marker.read(writtenBy(['taintward-former', -1]));
    marker.read({});
    assert.deepEqual(newsOf(marker), []);
  });

  test("are compared by the local clock, not the server's", () => {
    const marker = new Marker('ours', SINCE);
    marker.read(writtenBy(['taintward-former', 50]), 60_000);
    marker.read(writtenBy(['taintward-theirs', -50]), -60_000);
    assert.deepEqual(newsOf(marker), ['theirs']);
  });
});

test("a marker's name is valid for the API server, however long the installation's name", () => {
  assert.equal(new Marker('x'.repeat(300), SINCE).manager.length, 128);
});
