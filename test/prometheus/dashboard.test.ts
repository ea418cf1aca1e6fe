import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { dump } from 'js-yaml';
import { POD_DELETIONS } from '#shared/telemetry/metrics.ts';
import { until } from '#test/cluster/rig/until.ts';
import { NpmStart } from '#test/world/npm-start.ts';
import { ALERTS_FILE } from './alert-rules.ts';
import { panelQueries } from './dashboard.ts';
import { promtool } from './promtool.ts';
import { scrapedSeries } from './scraped-series.ts';

/** The interval of the scrapes in Prometheus' tests. */
const INTERVAL_SECONDS = 15;

/** Returns scrapes of a service before, while, and after it evicts pods, and the name of its cluster. */
async function scrapesOfEvictions(context: TestContext) {
  const service = new NpmStart(context, ['--log', 'json']);
  const { port } = await service.event('relay.started');
  await service.event('relay.synced');
  const scrape = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const before = await scrape();
  service.type('taint node-1 maintenance=now:NoExecute');
  const { cluster } = await service.event('pod.evicted');
  const counted = new RegExp(`^${POD_DELETIONS} [1-9]`, 'm');
  // The service renders its metrics once a second.
  const during = await until('it is counted', async () => {
    const metrics = await scrape();
    return counted.test(metrics) && metrics;
  });
  return { scrapes: [before, during, await scrape()], cluster: String(cluster) };
}

test('each query of the dashboard has a result during evictions, and no alert fires', async (context) => {
  const { scrapes, cluster } = await scrapesOfEvictions(context);
  const dir = mkdtempSync(join(tmpdir(), 'prometheus-'));
  context.after(() => rmSync(dir, { recursive: true }));
  const eval_time = `${(scrapes.length - 1) * INTERVAL_SECONDS}s`;
  const queries = panelQueries().map(({ expr }) =>
    expr.replaceAll('$cluster', cluster).replaceAll('$__rate_interval', `${4 * INTERVAL_SECONDS}s`),
  );
  const tests = join(dir, 'dashboard.test.yaml');
  writeFileSync(
    tests,
    dump({
      rule_files: [ALERTS_FILE],
      evaluation_interval: `${INTERVAL_SECONDS}s`,
      tests: [
        {
          interval: `${INTERVAL_SECONDS}s`,
          input_series: scrapedSeries(scrapes),
          promql_expr_test: [
            ...queries.map((expr) => ({
              // A value that is no number, such as a percentile of nothing, counts as no result.
              expr: `count((${expr}) >= -Inf) > bool 0`,
              eval_time,
              exp_samples: [{ labels: '{}', value: 1 }],
            })),
            { expr: 'ALERTS{alertstate="firing"}', eval_time, exp_samples: [] },
          ],
        },
      ],
    }),
  );
  promtool('test', 'rules', tests);
});
