import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { Api } from '#shared/console/api.ts';
import { whatText, whyText } from '#shared/operations/look/history-text.ts';
import type { EvictionEvent } from '#shared/state/history.ts';
import { Choice, ClusterChoice, TextField } from '../fields.ts';
import { now } from '../live.ts';
import { counted } from '../moments.ts';
import { Empty, Failed, Moment, NodeLink, PodLink, Tag, Title } from '../parts.ts';
import { querySetter, route } from '../route.ts';
import { type Column, column, Rows } from '../rows.ts';
import { pathOf } from '../server.ts';
import { useAnswer } from '../use-answer.ts';
import { EVENT } from '../words.ts';
import { localText } from './story.ts';

const FILTERS = ['cluster', 'node', 'namespace', 'pod', 'event'];
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

/** One timeline of taints, evictions, and the acts of operators, newest first. */
export function History(): VNode {
  const { query } = route.value;
  const asks = (name: string) => query.get(name) ?? '';
  const [limit, setLimit] = useState(STEP);
  const [cluster, node, namespace, pod, event] = FILTERS.map(asks);
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
  return html`
    <${Title}
      title="History"
      lead=${error === undefined ? `${count}${more ? ', and older entries' : ''}` : 'Unknown'}
    >
      <a class="button" download="taintward-history.csv" href=${pathOf('GET api/history.csv', {
        ...Object.fromEntries(FILTERS.map((name) => [name, asks(name).trim()])),
        from: Math.max(0, now.peek() - Number(since)),
      })}>Download CSV</a>
    </${Title}>
    <search class="filters">
      <${Choice} label="Event" value=${event} options=${EVENTS} onChoice=${querySetter('event')} />
      <${Choice} label="Period" value=${since} options=${SINCE} onChoice=${querySetter('since')} />
      <${TextField} label="Namespace" value=${namespace} onText=${querySetter('namespace')} />
      <${TextField} label="Pod" value=${pod} onText=${querySetter('pod')} />
      <${TextField} label="Node" value=${node} onText=${querySetter('node')} />
      <${ClusterChoice} value=${cluster} onChoice=${querySetter('cluster')} />
    </search>
    ${error !== undefined && html`<${Failed} error=${error} />`}
    ${
      answer && entries.length === 0
        ? html`<${Empty} title="No matching entries">
            History keeps scheduled, held, evicted, and canceled evictions for seven days. Enter complete names, select a longer period,
            or remove filters.
          </${Empty}>`
        : html`<${Rows} label="History" wrap columns=${COLUMNS} rows=${entries} keyOf=${entryKey} />`
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

type Entry = Api['GET api/history']['answer']['entries'][number];

const entryKey = ({ entry }: Entry): string =>
  'uid' in entry ? `${entry.at} ${entry.uid} ${entry.event} ${entry.dueAt}` : JSON.stringify(entry);

const COLUMNS: readonly Column<Entry>[] = [
  column(
    { key: 'pod', head: 'Pod', width: 'minmax(12rem, 2fr)' },
    ({ entry }) =>
      'pod' in entry &&
      html`<${PodLink} cluster=${entry.cluster} namespace=${entry.namespace} pod=${entry.pod} />`,
  ),
  column(
    { key: 'at', head: 'Time', width: 'minmax(5rem, 0.7fr)' },
    ({ entry: { at } }) => html`<${Moment} at=${at} />`,
  ),
  column(
    { key: 'event', head: 'Event', width: 'minmax(7rem, 0.8fr)' },
    (shown) =>
      html`<${Tag} text=${whatText(shown)} tone=${shown.of === 'pod' ? EVENT[shown.entry.event].tone : 'link'} />`,
  ),
  column(
    { key: 'node', head: 'Node', width: 'minmax(5rem, 0.8fr)' },
    ({ entry }) => 'node' in entry && html`<${NodeLink} cluster=${entry.cluster} node=${entry.node} />`,
  ),
  column(
    { key: 'cluster', head: 'Cluster', width: 'minmax(5rem, 0.8fr)' },
    ({ entry: { cluster } }) => cluster ?? 'all clusters',
  ),
  column({ key: 'cause', head: 'Cause', width: 'minmax(10rem, 3fr)' }, (shown) => {
    const text = localText(whyText(shown), shown.entry.at);
    return html`<span class="soft" title=${text}>${text}</span>`;
  }),
];
