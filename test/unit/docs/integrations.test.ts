import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { alertRules } from '#test/prometheus/alert-rules.ts';
import { grafanaDashboard, panelQueries } from '#test/prometheus/dashboard.ts';
import { metricsCatalogue } from '../../../docs/generator/metrics-catalogue.ts';

const ROOT = join(import.meta.dirname, '../../..');
/** Labels that Prometheus adds to every series that it scrapes. */
const OF_TARGET = ['job', 'instance'];

/** Returns the names of metrics and of labels in a PromQL query. */
function namesIn(expr: string): { readonly metrics: readonly string[]; readonly labels: readonly string[] } {
  const bare = expr.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').replaceAll(/\[[^\]]*\]/g, '');
  const labels = [
    ...[...bare.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*""/g)].map(([, label = '']) => label),
    ...[...bare.matchAll(/\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g)].flatMap(([, list = '']) =>
      list.split(/[\s,]+/).filter(Boolean),
    ),
  ];
  const rest = bare.replaceAll(/\{[^}]*\}/g, '').replaceAll(/\b(?:by|without|on|ignoring)\s*\([^)]*\)/g, '');
  const words = [...rest.matchAll(/[a-z_]\w*(?!\w|\s*\()/gi)].map(([word]) => word);
  return { metrics: words.filter((word) => !['or', 'and', 'unless', 'bool'].includes(word)), labels };
}

/** Returns the labels of each exported series. */
async function labelsBySeries(): Promise<ReadonlyMap<string, readonly string[]>> {
  const entries: (readonly [string, readonly string[]])[] = [];
  for (const { name, prometheus } of await metricsCatalogue()) {
    if (!prometheus) continue;
    const labels = [...prometheus.labels, ...OF_TARGET];
    if (prometheus.type === 'histogram') {
      entries.push([`${name}_bucket`, [...labels, 'le']], [`${name}_count`, labels], [`${name}_sum`, labels]);
    } else {
      entries.push([name, labels]);
    }
  }
  return new Map(entries);
}

test('alert rules and dashboard use exported metrics and labels', async () => {
  const served = await labelsBySeries();
  const queries = [
    ...alertRules().map(({ alert, expr }) => ({ where: alert, expr })),
    ...panelQueries().map(({ panel, expr }) => ({ where: panel, expr })),
  ];
  for (const { where, expr } of queries) {
    const { metrics, labels } = namesIn(expr);
    assert.ok(metrics.length > 0, `${where} asks for nothing`);
    for (const metric of metrics) assert.ok(served.has(metric), `${where}: nobody serves ${metric}`);
    const known = metrics.flatMap((metric) => served.get(metric) ?? []);
    for (const label of labels)
      assert.ok(known.includes(label), `${where}: ${metrics} has no label ${label}`);
  }
});

test('alert rules use labels that their series have', () => {
  for (const { alert, expr, annotations } of alertRules()) {
    const { metrics, labels } = namesIn(expr);
    const grouped = /\bby\b/.test(expr);
    for (const [, label = ''] of annotations.description.matchAll(/\$labels\.(\w+)/g)) {
      const known = grouped ? labels : [...OF_TARGET, 'queue'];
      assert.ok(known.includes(label), `${alert}: what it finds of ${metrics} has no label ${label}`);
    }
  }
});

test("each alert's runbook exists", () => {
  for (const { alert, annotations } of alertRules()) {
    const [page = '', anchor] = annotations.runbook.split('#');
    const headings = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^#+ (.*)$/gm)].map(
      ([, text = '']) =>
        text
          .toLowerCase()
          .replaceAll(/[^\w\- ]/g, '')
          .replaceAll(' ', '-'),
    );
    assert.ok(
      anchor === undefined || headings.includes(anchor),
      `${alert}: there is no ${annotations.runbook}`,
    );
  }
});

test('panels have unique IDs and use variables that the dashboard defines', () => {
  const { panels, templating } = grafanaDashboard();
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const variables = templating.list.map(({ name }) => name);
  assert.deepEqual(variables, ['datasource', 'cluster']);
  for (const { panel, expr } of panelQueries()) {
    for (const [, name = ''] of expr.matchAll(/\$(\w+)/g)) {
      assert.ok(['__rate_interval', ...variables].includes(name), `${panel}: there is no variable ${name}`);
    }
  }
});
