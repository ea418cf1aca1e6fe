import { isVariableStatement } from 'typescript/unstable/ast/is';
import * as constants from '#shared/telemetry/metrics.ts';
import { metricsCatalogue } from './metrics-catalogue.ts';
import type { ServiceCode } from './service-code.ts';
import { table } from './table.ts';

/** docs/reference/metrics.md, from the metrics themselves. */
export async function metricsPage(code: ServiceCode): Promise<string> {
  const catalogue = await metricsCatalogue();
  const meanings = meaningsByName(code);
  const prometheus = catalogue.flatMap(({ name, prometheus: metric }) =>
    metric
      ? [
          [
            `\`${name}\``,
            metric.type,
            metric.labels.map((label) => `\`${label}\``).join(' '),
            metric.servedBy.map((each) => (each === 'npm start' ? `\`${each}\`` : each)).join(', '),
            metric.help,
          ],
        ]
      : [],
  );
  const cloudWatch = catalogue.flatMap(({ name, cloudWatch: metric }) =>
    metric
      ? [[`\`${name}\``, metric.unit, metric.writtenBy.join(', '), meanings.get(name) ?? undocumented(name)]]
      : [],
  );
  return `# Metrics

<!-- Made from the code by npm run docs. -->

## Prometheus

Served at \`/metrics\` by \`npm start\`, by each relay of a deployed service, and by each [agent](../how-to/run-an-agent.md). What no relay serves is counted by
functions in a deployed one, which tell [CloudWatch](#cloudwatch). Counters count since the process began; metrics by cluster are those of the
clusters that the process follows. [Integrations](../how-to/monitor.md) has alert rules and a dashboard.

${table(['metric', 'type', 'labels', 'served by', 'meaning'], prometheus)}

## CloudWatch

Written into the log in CloudWatch's embedded metric format, without dimensions, in the namespace that is the name of the
stack (\`taintward\`). The stack's alarms and dashboard read them. With \`taintward:metricsByCluster\` what \`evict\` writes of a cluster is there once
more by \`cluster\`, its one dimension: eight metrics, each $0.30 a month for each cluster (by the hour: only while it is written). Without, the
dashboard and [queries](../how-to/query-evictions.md) tell of clusters from the log, which costs nothing until it is asked; what is pending or held is told there alone.

${table(['metric', 'unit', 'written by', 'meaning'], cloudWatch)}
`;
}

function undocumented(name: string): never {
  throw new Error(`${name} has no doc comment in shared/telemetry/metrics.ts`);
}

/** The doc comments of the metrics' names. */
function meaningsByName({ checker, file }: ServiceCode): ReadonlyMap<string, string> {
  const names: Readonly<Record<string, string>> = constants;
  const declared = file('shared/telemetry/metrics.ts')
    .statements.filter(isVariableStatement)
    .flatMap(({ declarationList }) => [...declarationList.declarations])
    .map(({ name }) => checker.getSymbolAtLocation(name));
  return new Map(
    declared.map((symbol) => [
      names[symbol?.name ?? ''] ?? '',
      symbol ? checker.getDocumentationCommentOfSymbol(symbol) : '',
    ]),
  );
}
