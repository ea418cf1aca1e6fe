import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Emf, emfEvictionMetrics } from '#shared/telemetry/emf.ts';
import { NOW } from '#test/contracts/partition-builders.ts';

function recordingEmf() {
  const lines: unknown[] = [];
  const write = (line: string) => lines.push(JSON.parse(line));
  return { lines, emf: new Emf({ namespace: 'taintward', clock: { now: () => NOW }, write }) };
}

describe('metrics in the embedded metric format', () => {
  test('what was noted is one document, with every single value', () => {
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

  test('nothing is written twice, and nothing at all when nothing was noted', () => {
    const { emf, lines } = recordingEmf();
    emf.flush();
    emf.put('evictions', 'Count', 1);
    emf.flush();
    emf.flush();
    assert.equal(lines.length, 1);
  });

  test('a document holds a hundred values of a metric; more of them make more documents', () => {
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

  test("evictions are counted under the built-in controller's names, in seconds", () => {
    const { emf, lines } = recordingEmf();
    const metrics = emfEvictionMetrics(emf);
    metrics.podDeleted(1.5);
    metrics.podDeleted(0.5);
    metrics.requestRefused();
    metrics.retried();
    metrics.rivalSeen();
    emf.flush();
    const [{ _aws: _header, ...values } = { _aws: undefined }] = lines as { _aws: unknown }[];
    assert.deepEqual(values, {
      taint_eviction_controller_pod_deletions_total: [1, 1],
      taint_eviction_controller_pod_deletion_duration_seconds: [1.5, 0.5],
      taintward_api_refusals_total: [1],
      taintward_eviction_retries_total: [1],
      taintward_rivals_total: [1],
    });
  });
});
