import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Emf, emfEvictionMetrics } from '#shared/aws/emf.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { NOW } from '#test/contracts/partition-builders.ts';

const C1 = clusterName('c1');

function recordingEmf(byCluster = false) {
  const lines: unknown[] = [];
  const write = (line: string) => lines.push(JSON.parse(line));
  return { lines, emf: new Emf({ namespace: 'taintward', byCluster, clock: { now: () => NOW }, write }) };
}

interface MetricDocument {
  readonly _aws: {
    readonly CloudWatchMetrics: readonly { readonly Metrics: readonly { Name: string; Unit: string }[] }[];
  };
}
const unitsIn = ({ CloudWatchMetrics }: MetricDocument['_aws']) =>
  CloudWatchMetrics.flatMap(({ Metrics }) => Metrics).map(({ Name, Unit }) => [Name, Unit] as const);
const unitOf = (name: string): string => (name.endsWith('_seconds') ? 'Seconds' : 'Count');

describe('metrics in the embedded metric format', () => {
  test('are written as one document with every single value', () => {
    const { emf, lines } = recordingEmf();
    emf.put('evictions', 'Count', 1);
    emf.put('late', 'Seconds', 0.25);
    emf.put('late', 'Seconds', 3);
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
                { Name: 'late', Unit: 'Seconds' },
              ],
            },
          ],
        },
        evictions: [1],
        late: [0.25, 3],
      },
    ]);
  });

  test('are written once, and without values not at all', () => {
    const { emf, lines } = recordingEmf();
    emf.flush();
    emf.put('evictions', 'Count', 1);
    emf.flush();
    emf.flush();
    assert.equal(lines.length, 1);
  });

  test('are written with at most a hundred values of a metric in a document', () => {
    const { emf, lines } = recordingEmf();
    for (let value = 0; value < 250; value++) emf.put('late', 'Seconds', value);
    emf.put('retries', 'Count', 1);
    emf.flush();
    const documents = lines as { late: number[]; retries?: number[] }[];
    assert.deepEqual(
      documents.map(({ late }) => late.length),
      [100, 100, 50],
    );
    assert.deepEqual(
      documents.flatMap(({ late }) => late),
      Array.from({ length: 250 }, (_, value) => value),
    );
    assert.deepEqual(
      documents.map(({ retries }) => retries),
      [[1], undefined, undefined],
    );
  });

  test('have a document for each cluster, with the dimensions of the service and of the cluster', () => {
    const { emf, lines } = recordingEmf(true);
    emf.put('late', 'Seconds', 1, C1);
    emf.put('late', 'Seconds', 2, clusterName('c2'));
    emf.put('late', 'Seconds', 3, C1);
    emf.put('clusters', 'Count', 2);
    emf.flush();
    const documents = lines as {
      _aws: { CloudWatchMetrics: { Dimensions: string[][] }[] };
      cluster?: string;
      late?: number[];
    }[];
    assert.deepEqual(
      documents.map(({ _aws, cluster, late }) => [_aws.CloudWatchMetrics[0]?.Dimensions, cluster, late]),
      [
        [[[], ['cluster']], 'c1', [1, 3]],
        [[[], ['cluster']], 'c2', [2]],
        [[[]], undefined, undefined],
      ],
    );
  });

  test('evictions are counted by cluster, under the names of the built-in controller, and in the units of the names', () => {
    const { emf, lines } = recordingEmf(true);
    const metrics = emfEvictionMetrics(emf);
    metrics.podDeleted(C1, 1.5);
    metrics.podDeleted(C1, 0.5);
    metrics.requestRefused(C1);
    metrics.outOfReach(C1);
    metrics.retried(C1);
    metrics.gaveUp(C1, 3);
    metrics.rivalSeen(C1);
    metrics.clockSkewed(C1, 2.5);
    metrics.messageFailing();
    emf.flush();
    const [{ _aws, ...values } = assert.fail(), others] = lines as MetricDocument[];
    for (const [name, unit] of unitsIn(_aws)) assert.equal(unit, unitOf(name), name);
    assert.partialDeepStrictEqual(others, { taintward_messages_failing_total: [1] });
    assert.deepEqual(values, {
      cluster: 'c1',
      taint_eviction_controller_pod_deletions_total: [1, 1],
      taint_eviction_controller_pod_deletion_duration_seconds: [1.5, 0.5],
      taintward_api_request_errors_total: [1],
      taintward_api_server_unreachable_total: [1],
      taintward_eviction_retries_total: [1],
      taintward_eviction_failures_total: [3],
      taintward_conflicting_installations_total: [1],
      taintward_clock_skew_seconds: [2.5],
    });
  });
});
