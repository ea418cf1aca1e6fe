import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { NodeRow } from '#shared/console/api.ts';
import { ClusterChoice } from '../fields.ts';
import { session } from '../live.ts';
import { counted } from '../moments.ts';
import { Ago, Countdown, Empty, Failed, NodeLink, Tag, Taints, Title } from '../parts.ts';
import { querySetter, route } from '../route.ts';
import { type Column, column, Rows } from '../rows.ts';
import { useAnswer } from '../use-answer.ts';
import { DemoNodes } from './demo.ts';

/** The tainted nodes. */
export function Nodes(): VNode {
  const { query } = route.value;
  const cluster = query.get('cluster') ?? '';
  const { answer, error } = useAnswer('GET api/nodes', () => ({ cluster }), [cluster]);
  const rows = answer ?? [];
  const lead = answer ? counted(rows.length, 'node') : 'Loading …';
  const demo = session.value?.demo;
  return html`
    <${Title} title="Tainted nodes" lead=${error === undefined ? lead : 'Unknown'} />
    <search class="filters">
      <${ClusterChoice} value=${cluster} onChoice=${querySetter('cluster')} />
    </search>
    ${error !== undefined && html`<${Failed} error=${error} />`}
    ${
      answer && rows.length === 0
        ? html`<${Empty} title="No tainted nodes">
            Nodes with a NoExecute taint appear here, with the age of each taint and the number of pending evictions.
          </${Empty}>`
        : html`<${Rows}
            label="Tainted nodes" wrap sort="next"
            columns=${COLUMNS}
            rows=${rows}
            keyOf=${({ cluster: of, node }: NodeRow) => `${of}/${node}`}
          />`
    }
    ${demo && html`<${DemoNodes} cluster=${demo.cluster} />`}
  `;
}

const COLUMNS: readonly Column<NodeRow>[] = [
  column(
    { key: 'node', head: 'Node', width: 'minmax(7.5rem, 1.6fr)', by: ({ node }) => node },
    ({ cluster, node, deletedAt }) => html`
      <${NodeLink} ...${{ cluster, node }} />${deletedAt !== undefined && html` <${Tag} text="deleted" />`}
    `,
  ),
  column(
    {
      key: 'next',
      head: 'Next eviction',
      width: 'minmax(6.25rem, 0.6fr)',
      numeric: true,
      by: ({ nextAt }) => nextAt ?? Number.MAX_SAFE_INTEGER,
    },
    ({ nextAt }) =>
      nextAt === undefined
        ? html`<span class="soft">none</span>`
        : html`<span class="left"><${Countdown} at=${nextAt} /></span>`,
  ),
  column(
    { key: 'taints', head: 'Taints', width: 'minmax(8rem, 3fr)', by: ({ taints }) => taints[0]?.key ?? '' },
    ({ taints }) => html`<${Taints} taints=${taints} />`,
  ),
  column(
    {
      key: 'since',
      head: 'Since',
      width: 'minmax(4.5rem, 0.9fr)',
      by: ({ taints }) => Math.min(...taints.map(({ since }) => since)),
    },
    ({ taints }) =>
      taints.length === 0 ? '' : html`<${Ago} at=${Math.min(...taints.map(({ since }) => since))} />`,
  ),
  column(
    { key: 'cluster', head: 'Cluster', width: 'minmax(4.5rem, 0.9fr)', by: ({ cluster }) => cluster },
    ({ cluster }) => cluster,
  ),
  column(
    {
      key: 'pending',
      head: 'Pending',
      width: 'minmax(4.5rem, 0.5fr)',
      numeric: true,
      by: ({ pending }) => pending,
    },
    ({ pending }) => pending.toLocaleString('en'),
  ),
  column(
    { key: 'held', head: 'Held', width: 'minmax(3.5rem, 0.5fr)', numeric: true, by: ({ held }) => held },
    ({ held }) => held.toLocaleString('en'),
  ),
  column(
    { key: 'retry', head: 'Error', width: 'minmax(4rem, 1fr)' },
    ({ retry }) =>
      retry &&
      html`<span class="failed small" title=${retry.error}>retry in <${Countdown} at=${retry.nextTryAt} />: ${retry.error}</span>`,
  ),
];
