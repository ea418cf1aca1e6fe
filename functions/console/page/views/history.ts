import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { EvictionEvent, HistoryEntry } from '#shared/state/history.ts';
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
import { useAnswer } from '../use-answer.ts';
import { causeText, EVENT } from '../words.ts';

const HOUR_MS = 3_600_000;
const SINCE: readonly (readonly [ms: string, text: string])[] = [
  [String(HOUR_MS), 'the last hour'],
  [String(24 * HOUR_MS), 'the last day'],
  [String(7 * 24 * HOUR_MS), 'the last week'],
];
const DAY = String(24 * HOUR_MS);
/** Number of entries in the first request. Each request for older entries doubles it. */
const STEP = 200;
const MAX = 1_000;

/** Past evictions, newest first. */
export function History(): VNode {
  const { query } = route.value;
  const asks = (name: string) => query.get(name) ?? '';
  const [limit, setLimit] = useState(STEP);
  const [cluster, node, namespace, pod, event] = ['cluster', 'node', 'namespace', 'pod', 'event'].map(asks);
  const since = asks('since') || DAY;
  const { answer, error } = useAnswer(
    'GET api/history',
    () => ({
      cluster,
      node: node?.trim(),
      namespace: namespace?.trim(),
      pod: pod?.trim(),
      event: isEvent(event) ? event : undefined,
      from: Math.max(0, now.peek() - Number(since)),
      limit,
    }),
    [cluster, node, namespace, pod, event, since, limit],
  );
  const { entries = [], more = false } = answer ?? {};
  const count = answer ? counted(entries.length, 'entry', 'entries') : 'Loading …';
  const columns = clusters.value.length > 1 ? COLUMNS : COLUMNS.filter(({ key }) => key !== 'cluster');
  return html`
    <${Title}
      title="History"
      lead=${error === undefined ? `${count}${more ? ', and older entries' : ''}` : 'Unknown'}
    />
    <search class="filters">
      <${Choice}
        label="Event"
        value=${event}
        options=${EVENTS}
        onChoice=${(value: string) => ask({ event: value })}
      />
      <${Choice} label="Period" value=${since} options=${SINCE} onChoice=${(value: string) => ask({ since: value })} />
      <${TextField} label="Namespace" value=${namespace} onText=${(value: string) => ask({ namespace: value })} />
      <${TextField} label="Pod" value=${pod} onText=${(value: string) => ask({ pod: value })} />
      <${TextField} label="Node" value=${node} onText=${(value: string) => ask({ node: value })} />
      <${ClusterChoice} value=${cluster} onChoice=${(value: string) => ask({ cluster: value })} />
    </search>
    ${error !== undefined && html`<${Failed} error=${error} />`}
    ${
      answer && entries.length === 0
        ? html`<${Empty} title="No matching entries">
            History keeps scheduled, held, evicted, and canceled evictions for seven days. Enter complete names, select a longer period,
            or remove filters.
          </${Empty}>`
        : html`<${Rows} label="History" wrap columns=${columns} rows=${entries} keyOf=${entryKey} />`
    }
    ${
      more &&
      (limit < MAX
        ? html`<div class="buttons">
            <button type="button" class="button" onClick=${() => setLimit(Math.min(MAX, limit * 2))}>Show older entries</button>
          </div>`
        : html`<p class="soft">To see older entries, filter by name or event.</p>`)
    }
  `;
}

const EVENTS: readonly (readonly [string, string])[] = [
  ['', 'all events'],
  ...Object.entries(EVENT).map(([event, { text }]) => [event, text] as const),
];

const isEvent = (text: string | undefined): text is EvictionEvent => text !== undefined && text in EVENT;

const entryKey = ({ at, uid, event, dueAt }: HistoryEntry): string => `${at} ${uid} ${event} ${dueAt}`;

const COLUMNS: readonly Column<HistoryEntry>[] = [
  {
    key: 'pod',
    head: 'Pod',
    width: 'minmax(10rem, 1.5fr)',
    cell: ({ cluster, namespace, pod }) => html`<${PodLink} ...${{ cluster, namespace, pod }} />`,
  },
  {
    key: 'at',
    head: 'Time',
    width: 'minmax(5rem, 0.7fr)',
    cell: ({ at }) => html`<${Moment} at=${at} />`,
  },
  {
    key: 'event',
    head: 'Event',
    width: 'minmax(7rem, 0.8fr)',
    cell: ({ event }) => html`<${Tag} ...${EVENT[event]} />`,
  },
  {
    key: 'node',
    head: 'Node',
    width: 'minmax(5rem, 0.8fr)',
    cell: ({ cluster, node }) => html`<${NodeLink} ...${{ cluster, node }} />`,
  },
  {
    key: 'cluster',
    head: 'Cluster',
    width: 'minmax(5rem, 0.8fr)',
    cell: ({ cluster }) => cluster,
  },
  {
    key: 'cause',
    head: 'Cause',
    width: 'minmax(12rem, 3fr)',
    cell: (entry) => {
      const text = causeText(entry, entry.at);
      return html`<span class="soft" title=${text}>${text}</span>`;
    },
  },
];
