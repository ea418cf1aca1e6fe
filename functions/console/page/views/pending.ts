import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { PendingStanding } from '#functions/operator/standing.ts';
import { BRAKE_KINDS } from '#shared/explain/brake-words.ts';
import type { PendingRow, StuckRow } from '../../api.ts';
import { ActButton, holdPod, releaseHold } from '../act-button.ts';
import { useAsked } from '../asked.ts';
import { clusters, now, pending, pendingTotal } from '../live.ts';
import { counted } from '../moments.ts';
import {
  Ago,
  Choice,
  ClusterChoice,
  Countdown,
  Empty,
  NodeLink,
  PodLink,
  Tag,
  TextField,
  Title,
} from '../parts.ts';
import { ask, route } from '../route.ts';
import { type Column, type Order, Rows, sorted } from '../rows.ts';
import { get } from '../server.ts';
import { STANDING } from '../words.ts';

const DEFAULT_ORDER: Order = { column: 'due', direction: 'ascending' };

/** All that is to be evicted, and what was evicted and does not leave. */
export function Pending(): VNode {
  const { query } = route.value;
  const [cluster, search, standing] = ['cluster', 'search', 'standing'].map((name) => query.get(name) ?? '');
  const order = orderOf(query.get('sort'));
  const all = pending.value;
  const columns = clusters.value.length > 1 ? COLUMNS : COLUMNS.filter(({ key }) => key !== 'cluster');
  const rows = useMemo(() => {
    const words = (search ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = [...(all?.values() ?? [])].filter(
      ([, ofCluster, node, namespace, pod, , stands, taints]) =>
        (!cluster || ofCluster === cluster) &&
        (!standing || stands === standing) &&
        words.every((word) => `${namespace}/${pod} ${node} ${taints}`.toLowerCase().includes(word)),
    );
    return sorted(wanted, COLUMNS, order);
  }, [all, cluster, search, standing, order.column, order.direction]);
  const total = pendingTotal.value;
  const shown =
    rows.length === total
      ? counted(total, 'pod')
      : `${counted(rows.length, 'pod')} of ${counted(total, 'pod')}`;
  return html`
    <${Title} title="Pending" lead=${all ? `${shown} to be evicted` : 'Asking the server …'} />
    <${Stuck} cluster=${cluster} />
    <search class="filters">
      <${TextField}
        label="Find a pod, node or taint"
        value=${search}
        placeholder="default/web node-1"
        onText=${(text: string) => ask({ search: text })}
      />
      <${Choice}
        label="Standing"
        value=${standing}
        options=${STANDINGS}
        onChoice=${(value: string) => ask({ standing: value })}
      />
      <${ClusterChoice} value=${cluster} onChoice=${(value: string) => ask({ cluster: value })} />
    </search>
    ${
      all && total > all.size
        ? html`<p class="card pad soft">There are more than this page shows: of ${counted(total, 'pod')}, these are the ${counted(all.size, 'pod')} that go first.</p>`
        : undefined
    }
    ${
      all && rows.length === 0
        ? html`<${NothingPending} filtered=${total > 0} />`
        : html`<${Rows}
            label="Pods to be evicted"
            columns=${columns}
            rows=${rows}
            keyOf=${([uid, ofCluster]: PendingRow) => `${ofCluster}/${uid}`}
            order=${order}
            onOrder=${({ column, direction }: Order) => ask({ sort: `${direction === 'descending' ? '-' : ''}${column}` })}
          />`
    }
  `;
}

const NothingPending = ({ filtered }: { readonly filtered: boolean }): VNode =>
  filtered
    ? html`<${Empty} title="No pod is like that">Others are to be evicted: clear what you are looking for to see them.</${Empty}>`
    : html`<${Empty} title="No pod is to be evicted">
        Once a node gets a NoExecute taint, its pods that do not tolerate it are here: those that tolerate it for a while with
        their countdown, and what is held with who holds it.
      </${Empty}>`;

const STANDINGS: readonly (readonly [string, string])[] = [
  ['', 'any'],
  ...Object.entries(STANDING).map(([standing, { text }]) => [standing, text] as const),
];

/** `due`, or `-due` for the other way round. */
function orderOf(text: string | null): Order {
  if (!text) return DEFAULT_ORDER;
  const descending = text.startsWith('-');
  return { column: descending ? text.slice(1) : text, direction: descending ? 'descending' : 'ascending' };
}

/** Its countdown comes to nothing for now: its row is grey. */
export const isHeld = (standing: PendingStanding): boolean => BRAKE_KINDS.some((kind) => kind === standing);

const COUNTS: readonly PendingStanding[] = ['waiting', 'due', 'rate'];

const COLUMNS: readonly Column<PendingRow>[] = [
  {
    key: 'pod',
    head: 'Pod',
    width: 'minmax(11rem, 3fr)',
    by: ([, , , namespace, pod]) => `${namespace}/${pod}`,
    cell: ([, cluster, , namespace, pod, , standing]) =>
      html`<span class=${isHeld(standing) ? 'soft' : ''}><${PodLink} ...${{ cluster, namespace, pod }} /></span>`,
  },
  {
    key: 'due',
    head: 'Due',
    width: 'minmax(5.5rem, 0.6fr)',
    numeric: true,
    by: ([, , , , , dueAt]) => dueAt,
    cell: ([, , , , , dueAt, standing]) =>
      COUNTS.includes(standing)
        ? html`<span class="left"><${Countdown} at=${dueAt} /></span>`
        : dueAt > now.value
          ? html`<span class="soft"><${Countdown} at=${dueAt} /></span>`
          : html`<span class="soft"><${Ago} at=${dueAt} /> ago</span>`,
  },
  {
    key: 'standing',
    head: 'Standing',
    width: 'minmax(9rem, 1.2fr)',
    by: ([, , , , , , standing]) => STANDING[standing].text,
    cell: ([, , , , , , standing, , note]) => html`
      <span title=${note}><${Tag} ...${STANDING[standing]} /></span>${note !== '' && html` <span class="soft small note" title=${note}>${note}</span>`}
    `,
  },
  {
    key: 'node',
    head: 'Node',
    width: 'minmax(6rem, 1.1fr)',
    by: ([, , node]) => node,
    cell: ([, cluster, node]) => html`<${NodeLink} ...${{ cluster, node }} />`,
  },
  {
    key: 'cluster',
    head: 'Cluster',
    width: 'minmax(5rem, 0.9fr)',
    by: ([, cluster]) => cluster,
    cell: ([, cluster]) => cluster,
  },
  {
    key: 'taints',
    head: 'Taints',
    width: 'minmax(5rem, 1.4fr)',
    by: ([, , , , , , , taints]) => taints,
    cell: ([, , , , , , , taints]) => html`<span title=${taints}>${shortTaints(taints)}</span>`,
  },
  {
    key: 'acts',
    head: 'What to do',
    unseen: true,
    width: '4.5rem',
    cell: ([, cluster, , namespace, pod, , , , , holds]) =>
      holds !== ''
        ? holds
            .split(',')
            .map(
              (id) =>
                html`<${ActButton} key=${id} look="plain" intent=${releaseHold(cluster, id)} about=${id} />`,
            )
        : html`<${ActButton} look="plain" intent=${holdPod(cluster, namespace, pod)} about=${`${namespace}/${pod}`} />`,
  },
];

/** What nearly all of them say is left out; the whole is where one points at it. */
const shortTaints = (taints: string): string =>
  taints.replaceAll('node.kubernetes.io/', '').replaceAll(':NoExecute', '');

/** Evicted pods that do not leave, with what helps. */
function Stuck({ cluster }: { readonly cluster: string | undefined }): VNode | undefined {
  const asked = useAsked(
    (signal) => get('GET api/stuck', { cluster: cluster || undefined }, signal),
    [cluster],
    true,
  );
  if (asked.kind !== 'answered' || asked.answer.length === 0) return undefined;
  return html`
    <section class="section" aria-labelledby="stuck">
      <div class="lead">
        <h2 id="stuck">Evicted, and still there</h2>
        <p class="soft small">${counted(asked.answer.length, 'pod')}; nothing is deleted by force</p>
      </div>
      <ul class="card needs">
        ${asked.answer.map(
          ({ cluster: ofCluster, uid, namespace, name, node, overAt, finalizers, nodeState }) => html`
            <li key=${uid}>
              <span class="lamp" data-tone="held"></span>
              <p>
                <${PodLink} cluster=${ofCluster} namespace=${namespace} pod=${name} /> on
                ${' '}<${NodeLink} cluster=${ofCluster} node=${node} />: its grace period has been over for
                ${' '}<${Ago} at=${overAt} />. <span class="soft">${helps(finalizers, nodeState)}</span>
              </p>
            </li>
          `,
        )}
      </ul>
    </section>
  `;
}

function helps(finalizers: readonly string[], nodeState: StuckRow['nodeState']): string {
  if (finalizers.length > 0)
    return `It waits for ${finalizers.join(', ')}: whoever owns that has to be done first.`;
  switch (nodeState) {
    case 'there':
      return 'Its kubelet is there and has not ended it: look at that node.';
    case 'unreachable':
      return 'Its node is not reached: if it is off for certain, taint it node.kubernetes.io/out-of-service.';
    case 'gone':
      return 'Its node is gone: pod garbage collection removes it as a rule.';
    default:
      return nodeState satisfies never;
  }
}
