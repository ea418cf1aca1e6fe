import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { HistoryEntry } from '#shared/store/history.ts';
import { useAsked } from '../asked.ts';
import { clusters, now } from '../live.ts';
import { counted } from '../moments.ts';
import {
  Choice,
  ClusterChoice,
  Empty,
  Failed,
  Moment,
  NodeLink,
  PodLink,
  Tag,
  TextField,
  Title,
} from '../parts.ts';
import { ask, route } from '../route.ts';
import { type Column, Rows } from '../rows.ts';
import { get } from '../server.ts';
import { becauseText, WHAT } from '../words.ts';

const HOUR_MS = 3_600_000;
const SINCE: readonly (readonly [ms: string, text: string])[] = [
  [String(HOUR_MS), 'the last hour'],
  [String(24 * HOUR_MS), 'the last day'],
  [String(7 * 24 * HOUR_MS), 'the last week'],
];
const DAY = String(24 * HOUR_MS);
/** So many entries are asked for at first, and more when somebody wants older ones. */
const STEP = 200;
const MOST = 1_000;

/** What became of evictions, the newest first. */
export function History(): VNode {
  const { query } = route.value;
  const asks = (name: string) => query.get(name) ?? '';
  const [limit, setLimit] = useState(STEP);
  const [cluster, node, namespace, pod, what] = ['cluster', 'node', 'namespace', 'pod', 'what'].map(asks);
  const since = asks('since') || DAY;
  const asked = useAsked(
    (signal) =>
      get(
        'GET api/history',
        {
          cluster: cluster || undefined,
          node: node?.trim() || undefined,
          namespace: namespace?.trim() || undefined,
          pod: pod?.trim() || undefined,
          what: isWhat(what) ? what : undefined,
          from: Math.max(0, now.peek() - Number(since)),
          limit,
        },
        signal,
      ),
    [cluster, node, namespace, pod, what, since, limit],
    true,
  );
  const entries = asked.kind === 'answered' ? asked.answer.entries : [];
  const more = asked.kind === 'answered' && asked.answer.more;
  const columns = clusters.value.length > 1 ? COLUMNS : COLUMNS.filter(({ key }) => key !== 'cluster');
  return html`
    <${Title}
      title="History"
      lead=${asked.kind === 'asking' ? 'Asking the server …' : `${counted(entries.length, 'entry', 'entries')}${more ? ', and older ones' : ''}`}
    />
    <search class="filters">
      <${Choice}
        label="What"
        value=${what}
        options=${WHATS}
        onChoice=${(value: string) => ask({ what: value })}
      />
      <${Choice} label="When" value=${since} options=${SINCE} onChoice=${(value: string) => ask({ since: value })} />
      <${TextField} label="Namespace" value=${namespace} onText=${(value: string) => ask({ namespace: value })} />
      <${TextField} label="Pod" value=${pod} onText=${(value: string) => ask({ pod: value })} />
      <${TextField} label="Node" value=${node} onText=${(value: string) => ask({ node: value })} />
      <${ClusterChoice} value=${cluster} onChoice=${(value: string) => ask({ cluster: value })} />
    </search>
    ${asked.kind === 'failed' && html`<${Failed} error=${asked.error} />`}
    ${
      asked.kind === 'answered' && entries.length === 0
        ? html`<${Empty} title="Nothing of that kind happened">
            What is scheduled, moved, held, evicted and saved stands here for seven days, with its reasons. Names are whole names;
            look further back, or for less.
          </${Empty}>`
        : html`<${Rows} label="History" wrap columns=${columns} rows=${entries} keyOf=${entryKey} />`
    }
    ${
      more &&
      (limit < MOST
        ? html`<div class="buttons">
            <button type="button" class="button" onClick=${() => setLimit(Math.min(MOST, limit * 2))}>Show older ones</button>
          </div>`
        : html`<p class="soft">Older ones: ask for less, by name or kind.</p>`)
    }
  `;
}

const WHATS: readonly (readonly [string, string])[] = [
  ['', 'everything'],
  ...Object.entries(WHAT).map(([what, { text }]) => [what, text] as const),
];

const isWhat = (text: string | undefined): text is HistoryEntry['what'] => text !== undefined && text in WHAT;

const entryKey = ({ at, uid, what, fireAt }: HistoryEntry): string => `${at} ${uid} ${what} ${fireAt}`;

const COLUMNS: readonly Column<HistoryEntry>[] = [
  {
    key: 'pod',
    head: 'Pod',
    width: 'minmax(10rem, 1.5fr)',
    cell: ({ ref, namespace, name }) =>
      html`<${PodLink} cluster=${ref.cluster} namespace=${namespace} pod=${name} />`,
  },
  {
    key: 'at',
    head: 'When',
    width: 'minmax(5rem, 0.7fr)',
    cell: ({ at }) => html`<${Moment} at=${at} />`,
  },
  {
    key: 'what',
    head: 'What',
    width: 'minmax(7rem, 0.8fr)',
    cell: ({ what }) => html`<${Tag} ...${WHAT[what]} />`,
  },
  {
    key: 'node',
    head: 'Node',
    width: 'minmax(5rem, 0.8fr)',
    cell: ({ ref }) => html`<${NodeLink} ...${ref} />`,
  },
  {
    key: 'cluster',
    head: 'Cluster',
    width: 'minmax(5rem, 0.8fr)',
    cell: ({ ref }) => ref.cluster,
  },
  {
    key: 'because',
    head: 'Because',
    width: 'minmax(12rem, 3fr)',
    cell: (entry) => {
      const text = becauseText(entry, entry.at);
      return html`<span class="soft" title=${text}>${text}</span>`;
    },
  },
];
