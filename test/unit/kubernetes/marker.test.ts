import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Marker } from '#shared/kubernetes/marker.ts';

const SINCE = Date.UTC(2026, 10, 21, 12);

/** A pod's JSON as it tells who wrote it, so many seconds after the marker began to look. */
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

/** All rivals that are news. */
function newsOf(marker: Marker): readonly string[] {
  const news = [];
  for (let rival = marker.takeRival(); rival; rival = marker.takeRival()) news.push(rival);
  return news;
}

describe('of those who wrote a pod', () => {
  test('another installation is a rival, and told of once', () => {
    const marker = new Marker('ours', SINCE);
    const pod = writtenBy(['kubelet', 1], ['taintward-ours', 1], ['taintward-theirs', 2]);
    marker.look(pod);
    marker.look(pod);
    assert.deepEqual(newsOf(marker), ['theirs']);
    marker.look(writtenBy(['taintward-theirs', 3], ['taintward-others', 3]));
    assert.deepEqual(newsOf(marker), ['others']);
  });

  test('the last rival is the one that marked a pod last, by our clock', () => {
    const marker = new Marker('ours', SINCE);
    assert.equal(marker.lastRival, undefined);
    marker.look(writtenBy(['taintward-theirs', 20], ['taintward-others', 10]));
    assert.deepEqual(marker.lastRival, { installation: 'theirs', markedAt: SINCE + 20_000 });
    marker.look(writtenBy(['taintward-others', 40]), 10_000);
    marker.look(writtenBy(['taintward-theirs', 5]));
    assert.deepEqual(marker.lastRival, { installation: 'others', markedAt: SINCE + 30_000 });
  });

  test('neither the kubelet nor this one nor the built-in controller is a rival', () => {
    const marker = new Marker('ours', SINCE);
    marker.look(writtenBy(['kubelet', 1], ['taintward-ours', 1], ['kube-controller-manager', 1]));
    marker.look({});
    assert.deepEqual(newsOf(marker), []);
  });

  test('a former installation is none: it wrote before', () => {
    const marker = new Marker('ours', SINCE);
    marker.look(writtenBy(['taintward-former', -1]));
    assert.deepEqual(newsOf(marker), []);
  });

  test("it counts when they did by our clock, not by the server's", () => {
    const marker = new Marker('ours', SINCE);
    marker.look(writtenBy(['taintward-former', 50]), 60_000);
    marker.look(writtenBy(['taintward-theirs', -50]), -60_000);
    assert.deepEqual(newsOf(marker), ['theirs']);
  });
});

test('however long its name, a marker is one that an API server takes', () => {
  assert.equal(new Marker('x'.repeat(300), SINCE).manager.length, 128);
});
