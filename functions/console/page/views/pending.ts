import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useMemo } from 'preact/hooks';
import type { PendingRow } from '#shared/console/api.ts';
import { stuckAdvice } from '#shared/operations/ask/words.ts';
import type { PendingState } from '#shared/operations/look/pending-state.ts';
import { Choice, ClusterChoice, TextField } from '../fields.ts';
import { now, pending, pendingTotal } from '../live.ts';
import { counted } from '../moments.ts';
import { Ago, Empty, Failed, NodeLink, PodLink, Section, Tag, TimeLeft, Title } from '../parts.ts';
import { ask, querySetter, route } from '../route.ts';
import { type Column, column, Rows } from '../rows.ts';
import { Checkbox, RowActs, type Selectable, Selection, selected } from '../selection.ts';
import { useAnswer } from '../use-answer.ts';
import { furtherText, STATE_WORDS, sentence } from '../words.ts';
import { PendingGroups } from './pending-groups.ts';
import { localText } from './story.ts';

/** All pending evictions, and the evicted pods that are stuck terminating. */
export function Pending(): VNode {
  const { query } = route.value;
  const [cluster, search = '', state, by = ''] = ['cluster', 'search', 'state', 'by'].map(
    (name) => query.get(name) ?? '',
  );
  // Only shown rows are selected.
  useEffect(() => {
    selected.value = new Set();
  }, [cluster, search, state, by]);
  const all = pending.value;
  const rows = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    return [...(all?.values() ?? [])].filter(
      ([, ofCluster, node, namespace, pod, , ofState, taints]) =>
        (!cluster || ofCluster === cluster) &&
        (!state || ofState === state) &&
        words.every((word) => `${namespace}/${pod} ${node} ${taints}`.toLowerCase().includes(word)),
    );
  }, [all, cluster, search, state]);
  const total = pendingTotal.value;
  const shown =
    rows.length === total
      ? counted(total, 'pod')
      : `${counted(rows.length, 'pod')} of ${counted(total, 'pod')}`;
  return html`
    <${Title} title="Pending" lead=${all ? `${shown} with a pending eviction` : 'Loading …'} />
    <${Stuck} cluster=${cluster} />
    <search class="filters">
      <${TextField}
        label="Pod, node, or taint"
        value=${search}
        placeholder="default/web node-1"
        onText=${querySetter('search')}
      />
      <${Choice} label="State" value=${state} options=${STATES} onChoice=${querySetter('state')} />
      <${Choice}
        label="Group by"
        value=${by}
        options=${GROUPINGS}
        onChoice=${(value: string) => ask({ by: value, sort: '' })}
      />
      <${ClusterChoice} value=${cluster} onChoice=${querySetter('cluster')} />
    </search>
    ${
      all && total > all.size
        ? html`<p class="card pad soft">This page shows the first ${counted(all.size, 'pod')} of ${counted(total, 'pod')}.</p>`
        : undefined
    }
    ${
      by
        ? html`<${PendingGroups} key=${by} ...${{ by, cluster, state, search }} />`
        : all && rows.length === 0
          ? html`<${NothingPending} filtered=${total > 0} />`
          : html`<${Selection} rows=${selected.value.size > 0 ? rows.map(selectable) : []} /><${Rows}
            label="Pending evictions" sort="due"
            columns=${COLUMNS}
            rows=${rows}
            keyOf=${([uid, ofCluster]: PendingRow) => `${ofCluster}/${uid}`}
          />`
    }
  `;
}

const NothingPending = ({ filtered }: { readonly filtered: boolean }): VNode =>
  filtered
    ? html`<${Empty} title="No matching pods">To see all pending evictions, clear the filters.</${Empty}>`
    : html`<${Empty} title="No pending evictions">Pods appear here when a node is tainted.</${Empty}>`;

const GROUPINGS: readonly (readonly [string, string])[] = [
  ['', 'no group'],
  ...['workload', 'node', 'zone'].map((by) => [by, by] as const),
];

const STATES: readonly (readonly [string, string])[] = [
  ['', 'any'],
  ...Object.entries(STATE_WORDS).map(([state, { text }]) => [state, text] as const),
];

const COUNTS: readonly PendingState[] = ['scheduled', 'due', 'rate-limited'];

const selectable = ([uid, cluster, , namespace, name, , , , , holds]: PendingRow): Selectable => ({
  key: `${cluster}/${uid}`,
  name: `${namespace}/${name}`,
  cluster,
  target: { kind: 'pod', namespace, name },
  holds: holds.split(',').filter(Boolean),
});

const COLUMNS: readonly Column<PendingRow>[] = [
  column(
    { key: 'pick', head: 'Select', unseen: true, width: '1.25rem' },
    (row) => html`<${Checkbox} row=${selectable(row)} />`,
  ),
  column(
    {
      key: 'pod',
      head: 'Pod',
      width: 'minmax(9rem, 2.5fr)',
      by: ([, , , namespace, pod]) => `${namespace}/${pod}`,
    },
    ([, cluster, , namespace, pod]) => html`<${PodLink} ...${{ cluster, namespace, pod }} />`,
  ),
  column(
    {
      key: 'due',
      head: 'Due',
      width: 'minmax(6rem, 0.6fr)',
      numeric: true,
      by: ([, , , , , dueAt]) => dueAt,
    },
    ([, , , , , dueAt, state, , , , nextTryAt]) =>
      html`<span class=${COUNTS.includes(state) ? 'left' : 'soft'}><${TimeLeft} ...${{ dueAt, state, nextTryAt }} /></span>`,
  ),
  column(
    {
      key: 'state',
      head: 'State',
      width: 'minmax(8.5rem, 2fr)',
      by: ([, , , , , , state]) => STATE_WORDS[state].text,
    },
    ([, , , , , , state, , written]) => {
      const note = localText(written, now.value);
      return html`
      <span title=${note}><${Tag} ...${STATE_WORDS[state]} /></span>${note !== '' && html` <span class="soft small note" title=${note}>${furtherText(STATE_WORDS[state].text, note)}</span>`}
    `;
    },
  ),
  column(
    { key: 'node', head: 'Node', width: 'minmax(7rem, 1.1fr)', by: ([, , node]) => node },
    ([, cluster, node]) => html`<${NodeLink} ...${{ cluster, node }} />`,
  ),
  column(
    { key: 'cluster', head: 'Cluster', width: 'minmax(4.5rem, 0.9fr)', by: ([, cluster]) => cluster },
    ([, cluster]) => cluster,
  ),
  column(
    {
      key: 'taints',
      head: 'Taints',
      minor: true,
      width: 'minmax(5rem, 1.4fr)',
      by: ([, , , , , , , taints]) => taints,
    },
    ([, , , , , , , taints]) => html`<span title=${taints}>${shortTaints(taints)}</span>`,
  ),
  column(
    { key: 'acts', head: 'Actions', unseen: true, width: '4.5rem' },
    (row) => html`<${RowActs} rows=${[selectable(row)]} />`,
  ),
];

/** Leaves out the parts that nearly all taints share. The tooltip shows the full text. */
const shortTaints = (taints: string): string =>
  taints.replaceAll('node.kubernetes.io/', '').replaceAll(':NoExecute', '');

function Stuck({ cluster }: { readonly cluster: string | undefined }): VNode | undefined {
  const { answer: stuck = [], error } = useAnswer('GET api/stuck', () => ({ cluster }), [cluster]);
  if (error !== undefined) return html`<${Failed} error=${error} />`;
  if (stuck.length === 0) return undefined;
  return html`
    <${Section} id="stuck" title="Stuck terminating"
      note=${`${counted(stuck.length, 'pod')}; Taintward never deletes by force`}>
      <ul class="card needs">
        ${stuck.map(
          (pod) => html`
            <li key=${pod.uid}>
              <span class="lamp" data-tone="held"></span>
              <p>
                <${PodLink} cluster=${pod.cluster} namespace=${pod.namespace} pod=${pod.name} /> on
                ${' '}<${NodeLink} cluster=${pod.cluster} node=${pod.node} />: its grace period ended
                ${' '}<${Ago} at=${pod.gracePeriodEndedAt} /> ago. <span class="soft">${sentence(stuckAdvice(pod))}</span>
              </p>
            </li>
          `,
        )}
      </ul>
    </${Section}>
  `;
}
