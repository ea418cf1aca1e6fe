import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Api } from '#shared/console/api.ts';
import type { HeldTarget } from '../act-button.ts';
import { Countdown, Empty, Failed } from '../parts.ts';
import { href } from '../route.ts';
import { type Column, column, Rows } from '../rows.ts';
import { Checkbox, RowActs, type Selectable, Selection } from '../selection.ts';
import { useAnswer } from '../use-answer.ts';

type Asks = Api['GET api/groups']['asks'];
type Group = Omit<Api['GET api/groups']['answer']['groups'][number], 'target'> & Selectable;

/** Pending evictions by workload, node, or zone, as `taintward pending --by` lists them. */
export function PendingGroups({ by, cluster, state, search }: Asks & { readonly search: string }): VNode {
  const { answer, error } = useAnswer('GET api/groups', () => ({ by, cluster, state }), [by, cluster, state]);
  const groups = (answer?.groups ?? [])
    .filter(({ name }) => name.includes(search))
    .map(
      (group): Group => ({
        ...group,
        target: group.target as HeldTarget,
        key: `${group.cluster}/${group.name}`,
      }),
    );
  return html`
    ${error !== undefined && html`<${Failed} error=${error} />`}
    ${answer && answer.unknown.length > 0 && html`<p class="card pad soft">${answer.unknown.join(' ')}</p>`}
    <${Selection} rows=${groups} />
    ${
      answer && groups.length === 0
        ? html`<${Empty} title="No matching groups">Groups of pending evictions appear here.</${Empty}>`
        : html`<${Rows}
            label="Groups of pending evictions" wrap sort="-pending"
            columns=${COLUMNS}
            rows=${groups}
            keyOf=${({ key }: Group) => key}
          />`
    }
  `;
}

function addressOf({ cluster, place, name }: Group): string {
  if ('node' in place) return href(['node', cluster, place.node]);
  return href(['pending'], {
    cluster,
    search: 'namespace' in place ? `${place.namespace}/${place.name}` : name,
  });
}

const small = { width: 'minmax(4.5rem, 0.5fr)' };
const COLUMNS: readonly Column<Group>[] = [
  column(
    { key: 'pick', head: 'Select', unseen: true, width: '1.25rem' },
    (row) => html`<${Checkbox} row=${row} />`,
  ),
  column(
    { key: 'name', head: 'Group', width: 'minmax(10rem, 2fr)', by: ({ name }) => name },
    (row) =>
      html`<a href=${addressOf(row)}>${row.name.split(/(?<=\/)/).map((part) => html`${part}<wbr />`)}</a>`,
  ),
  column({ key: 'cluster', head: 'Cluster', ...small }, ({ cluster }) => cluster),
  column(
    { key: 'pending', head: 'Pending', ...small, by: ({ pending }) => pending },
    ({ pending }) => pending,
  ),
  column({ key: 'due', head: 'Due', minor: true, ...small, by: ({ due }) => due }, ({ due }) => due),
  column(
    { key: 'held', head: 'Held', width: 'minmax(7rem, 1fr)', by: ({ held }) => held },
    ({ keptBy }) => keptBy,
  ),
  column(
    { key: 'next', head: 'Next', ...small },
    ({ nextAt }) => nextAt && html`<${Countdown} at=${nextAt} />`,
  ),
  column({ key: 'ready', head: 'Ready', ...small }, ({ ready }) => ready),
  column({ key: 'budget', head: 'Budget', width: 'minmax(6rem, 1fr)' }, ({ budget }) => budget),
  column(
    { key: 'acts', head: 'Actions', unseen: true, width: '4.5rem' },
    (row) => html`<${RowActs} rows=${[row]} />`,
  ),
];
