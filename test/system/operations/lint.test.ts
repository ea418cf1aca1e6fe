import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { type LintFinding, lintCluster, lintManifests } from '#shared/operations/ask/lint.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type SettledCluster, settledCluster } from '#test/world/settled-cluster.ts';

const OFF = { comparisonOperators: false };

const lines = (text: string) =>
  lintManifests([{ name: 'a.yaml', text }], OFF).findings.map(
    ({ rule, at, object }) => `${at?.line} ${object.kind}/${object.name} ${rule}`,
  );

/** Returns a manifest of a kind, which begins on line 1, with one toleration in its pod template. */
const deployment = (name: string, toleration: string) => `kind: Deployment
metadata: { name: ${name} }
spec:
  template:
    spec:
      containers: []
      tolerations:
      - ${toleration}
`;

const FINITE = '{ key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 60 }';

describe('lint of manifests', () => {
  test('reports each toleration on its line, in each document', () => {
    const text = `${deployment('one', FINITE)}---\n${deployment('two', FINITE)}`;
    assert.deepEqual(lines(text), [
      '8 Deployment/one replacement-loops',
      '17 Deployment/two replacement-loops',
    ]);
  });

  test('reports tolerations in a List, in JSON, and in CronJobs and pods', () => {
    const spec = { containers: [], tolerations: [{ key: 'a', operator: 'exists' }] };
    const pod = { kind: 'Pod', metadata: { name: 'p' }, spec };
    const jobTemplate = { spec: { template: { spec } } };
    const cronJob = { kind: 'CronJob', metadata: { name: 'c' }, spec: { jobTemplate } };
    const json = JSON.stringify({ kind: 'List', items: [pod, cronJob] });
    assert.deepEqual(lines(json), ['1 Pod/p unknown-operator', '1 CronJob/c unknown-operator']);
  });

  test('reports an alias where it is used', () => {
    const text = `${deployment('one', '*t')}`.replace('metadata:', `x: &t ${FINITE}\nmetadata:`);
    assert.deepEqual(lines(text), ['9 Deployment/one replacement-loops']);
  });

  test('skips kinds without pods, and empty documents', () => {
    const text = '---\n---\nkind: ConfigMap\ndata: { a: b }\n---\nreplicaCount: 3\n';
    assert.deepEqual(lintManifests([{ name: 'a.yaml', text }], OFF), {
      objects: 0,
      findings: [],
      unknown: [],
    });
  });

  test('reports an unrendered template, and checks the other files', () => {
    const report = lintManifests(
      [
        { name: 'chart.yaml', text: 'replicas: 3\nname: {{ .Values.name }}\nlabels: [\n' },
        { name: 'web.yaml', text: deployment('web', FINITE) },
      ],
      OFF,
    );
    assert.deepEqual(
      report.findings.map(({ rule, at }) => [rule, at]),
      [
        ['unreadable-manifest', { file: 'chart.yaml', line: 4 }],
        ['replacement-loops', { file: 'web.yaml', line: 8 }],
      ],
    );
  });

  test('treats the largest int64, which YAML rounds up, as no limit', () => {
    assert.deepEqual(lines(deployment('one', FINITE.replace('60', '9223372036854775807'))), []);
  });
});

describe('lint of the simulated cluster', () => {
  let settled: SettledCluster;
  before(async () => {
    settled = await settledCluster(async ({ objects }) => {
      const containers = [{ name: 'c', image: 'busybox' }];
      for (const name of ['shard-1', 'shard-2']) {
        await objects.create('/api/v1/namespaces/default/pods', {
          metadata: {
            name,
            ownerReferences: [
              { apiVersion: 'db.example/v1', kind: 'Ring', name: 'ring', uid: 'r1', controller: true },
            ],
          },
          spec: { containers, tolerations: [{ key: 'gone', operator: 'Exists', effect: 'NoSchedule' }] },
        });
      }
      const tolerationsWhitelist = JSON.stringify([{ key: 'a', operator: 'Exists' }]);
      await objects.create('/api/v1/namespaces', {
        metadata: {
          name: 'strict',
          annotations: { 'scheduler.alpha.kubernetes.io/tolerationsWhitelist': tolerationsWhitelist },
        },
      });
      return 2;
    });
  });
  after(() => settled.close());

  const lint = (namespace?: string) =>
    lintCluster(
      settled.fleet,
      { cluster: clusterName(settled.cluster.context), namespace, matching: OFF },
      { now: systemClock.now, progress: () => undefined },
    );
  const texts = (findings: readonly LintFinding[]) =>
    findings.map(({ object, rule, level }) => `${object.kind}/${object.name} ${rule} ${level}`);

  test('checks a workload once regardless of its pods, and likewise the pods of an unknown owner', async () => {
    const { objects, findings, unknown } = await lint();
    assert.deepEqual(texts(findings), [
      'Deployment/checkout replacement-loops warning',
      'Deployment/checkout unknown-key note',
      'StatefulSet/db replacement-loops warning',
      'StatefulSet/db unknown-key note',
      'Ring/ring unknown-key note',
      'Namespace/strict whitelist-refuses-takeover note',
    ]);
    assert.deepEqual([objects, unknown], [6, []]);
  });

  test('checks only the given namespace', async () => {
    assert.deepEqual(texts((await lint('strict')).findings), [
      'Namespace/strict whitelist-refuses-takeover note',
    ]);
  });
});
