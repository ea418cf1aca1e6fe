import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Emf } from '#shared/aws/emf.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { NOW } from '#test/contracts/partition-builders.ts';

const C1 = clusterName('c1');

function recordingEmf(byCluster = false) {
  const lines: unknown[] = [];
  const write = (line: string) => lines.push(JSON.parse(line));
  return { lines, emf: new Emf({ namespace: 'taintward', byCluster, clock: { now: () => NOW }, write }) };
}

describe('metrics in the embedded metric format', () => {
  test('are written as one document with every single value', () => {
    const { emf, lines } = recordingEmf();
    emf.put('evictions', 1);
    emf.put('late_seconds', 0.25);
    emf.put('late_seconds', 3);
    emf.flush();
    assert.deepEqual(lines, [
      {
        _aws: {
          Timestamp: NOW,
          CloudWatchMetrics: [
            {
              Namespace: 'taintward',
              Dimensions: [[]],
              Metrics: [
                { Name: 'evictions', Unit: 'Count' },
                { Name: 'late_seconds', Unit: 'Seconds' },
              ],
            },
          ],
        },
        evictions: [1],
        late_seconds: [0.25, 3],
      },
    ]);
  });

  test('are written once, and without values not at all', () => {
    const { emf, lines } = recordingEmf();
    emf.flush();
    emf.put('evictions', 1);
    emf.flush();
    emf.flush();
    assert.equal(lines.length, 1);
  });

  test('are written with at most a hundred values of a metric in a document', () => {
    const { emf, lines } = recordingEmf();
    for (let value = 0; value < 250; value++) emf.put('late_seconds', value);
    emf.put('retries', 1);
    emf.flush();
    const documents = lines as { late_seconds: number[]; retries?: number[] }[];
    assert.deepEqual(
      documents.map(({ late_seconds }) => late_seconds.length),
      [100, 100, 50],
    );
    assert.deepEqual(
      documents.flatMap(({ late_seconds }) => late_seconds),
      Array.from({ length: 250 }, (_, value) => value),
    );
    assert.deepEqual(
      documents.map(({ retries }) => retries),
      [[1], undefined, undefined],
    );
  });

  test('have a document for each cluster, with the dimensions of the service and of the cluster', () => {
    const { emf, lines } = recordingEmf(true);
    emf.put('late_seconds', 1, C1);
    emf.put('late_seconds', 2, clusterName('c2'));
    emf.put('late_seconds', 3, C1);
    emf.put('clusters', 2);
    emf.flush();
    const documents = lines as {
      _aws: { CloudWatchMetrics: { Dimensions: string[][] }[] };
      cluster?: string;
      late_seconds?: number[];
    }[];
    assert.deepEqual(
      documents.map(({ _aws, cluster, late_seconds }) => [
        _aws.CloudWatchMetrics[0]?.Dimensions,
        cluster,
        late_seconds,
      ]),
      [
        [[[], ['cluster']], 'c1', [1, 3]],
        [[[], ['cluster']], 'c2', [2]],
        [[[]], undefined, undefined],
      ],
    );
  });
});
