import { isVariableStatement } from 'typescript/unstable/ast/is';
import * as constants from '#shared/telemetry/metrics.ts';
import { metricsCatalogue } from './metrics-catalogue.ts';
import type { ServiceCode } from './service-code.ts';
import { table } from './table.ts';

/** Returns docs/reference/metrics.md, from the metrics themselves. */
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

<!-- Generated from the code by npm run docs. -->

Look up a metric for a dashboard or an alert. For alert rules and a dashboard, see [Monitor](../how-to/monitor.md).

## Prometheus

\`npm start\`, each relay of a deployed service, and each [agent](../how-to/run-an-agent.md) serve these metrics at \`/metrics\`. In a deployed service, Lambda functions report
the others to [CloudWatch](#cloudwatch). Counters start at zero with the process. Metrics by cluster cover the clusters that the process follows.

${table(['metric', 'type', 'labels', 'served by', 'meaning'], prometheus)}

## CloudWatch

The log contains these metrics in CloudWatch's embedded metric format, without dimensions, in a namespace with the name of the
stack (\`taintward\`). The stack's alarms and dashboard read them. With \`taintward:metricsByCluster\`, metrics of \`evict\` also have the dimension \`cluster\`. These
are eight metrics, each $0.30 a month for each cluster, billed by the hour in which they are written. Without the setting, the dashboard and
[queries](../how-to/query-evictions.md) read the log by cluster, at the cost of each query. Pending and held evictions are in the log only.

${table(['metric', 'unit', 'written by', 'meaning'], cloudWatch)}
`;
}

function undocumented(name: string): never {
  throw new Error(`${name} has no doc comment in shared/telemetry/metrics.ts`);
}

/** Returns the doc comments of the metrics' names. */
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
