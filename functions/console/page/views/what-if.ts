import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { WhatIfAnswer as Answer } from '#functions/operator/what-if.ts';
import type { Break, BudgetFate, WorkloadFate } from '#shared/explain/what-if.ts';
import { clusters } from '../live.ts';
import { counted, momentText, spanText } from '../moments.ts';
import { ClusterChoice, Empty, Failed, PodLink, TextField, Title } from '../parts.ts';
import { ask, route } from '../route.ts';
import { type Column, Rows } from '../rows.ts';
import { get, sentenceOf } from '../server.ts';
import { STANDING, taintText } from '../words.ts';

/** What would happen if some nodes had a taint; nothing is changed by asking. */
export function WhatIf(): VNode {
  const { query } = route.value;
  const taint = query.get('taint') ?? 'maintenance:NoExecute';
  const nodes = query.get('nodes') ?? '';
  const cluster = query.get('cluster') || clusters.value[0]?.cluster || '';
  const [answer, setAnswer] = useState<Answer | undefined>(undefined);
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  const find = async () => {
    setBusy(true);
    setError('');
    try {
      const which =
        nodes.trim() === '' ? {} : isSelector(nodes) ? { selector: nodes.trim() } : { nodes: names(nodes) };
      setAnswer(await get('GET api/what-if', { cluster, taint: taint.trim(), ...which }));
    } catch (thrown) {
      setAnswer(undefined);
      setError(sentenceOf(thrown));
    } finally {
      setBusy(false);
    }
  };
  return html`
    <${Title} title="What if" lead="Which pods would go if nodes had a taint. It only reads." />
    <form
      class="filters"
      onSubmit=${(event: Event) => {
        event.preventDefault();
        if (!busy) void find();
      }}
    >
      <${ClusterChoice} all=${false} value=${cluster} onChoice=${(value: string) => ask({ cluster: value })} />
      <${TextField} label="Taint" value=${taint} onText=${(text: string) => ask({ taint: text })} />
      <${TextField}
        label="Nodes: names, or labels they have"
        wide
        value=${nodes}
        placeholder="all of them"
        onText=${(text: string) => ask({ nodes: text })}
      />
      <button type="submit" class="button main" disabled=${busy || cluster === ''}>
        ${busy ? 'Finding out …' : 'Find out'}
      </button>
    </form>
    <div class="section answer" aria-live="polite">
      ${error !== '' && html`<${Failed} error=${error} />`}
      ${
        answer
          ? html`<${Outcome} answer=${answer} cluster=${cluster} />`
          : error === '' &&
            html`<${Empty} title="Ask before you taint">
              Name a taint as kubectl writes it, and nodes as <code>node-1, node-2</code> or by their labels,
              as <code>topology.kubernetes.io/zone=zone-a</code>. You are told which pods go now, later or stay, which disruption
              budgets would break, what nobody makes anew, and whether the guard would trip.
            </${Empty}>`
      }
    </div>
  `;
}

const isSelector = (text: string): boolean => /[=!()]/.test(text);

const names = (text: string): string =>
  text
    .split(/[\s,]+/)
    .filter(Boolean)
    .join(',');

function Outcome({ answer, cluster }: { readonly answer: Answer; readonly cluster: string }): VNode {
  const {
    at,
    taint,
    nodes,
    pods,
    now,
    later,
    stays,
    brake,
    guard,
    breaks,
    workloads,
    budgets,
    pace,
    unknown,
  } = answer;
  const numbers: readonly (readonly [number, string, string | undefined])[] = [
    [now, 'go now', now > 0 ? 'goes' : undefined],
    [later, 'go later', later > 0 ? 'held' : undefined],
    [stays, stays === 1 ? 'stays' : 'stay', undefined],
  ];
  return html`
    <p>
      <strong>${taintText(taint)}</strong> on ${counted(nodes.length, 'node')} with ${counted(pods, 'pod')}:
    </p>
    <dl class="numbers card">
      ${numbers.map(
        ([count, text, tone]) => html`
          <div key=${text} data-tone=${tone}>
            <dt>${text}</dt>
            <dd>${count.toLocaleString('en')}</dd>
          </div>
        `,
      )}
    </dl>
    ${
      brake !== undefined &&
      html`<p class="card pad">As rules are now nothing would go: evictions are ${STANDING[brake.kind].text}. This is what would happen without that.</p>`
    }
    <section class="section" aria-labelledby="breaks">
      <h2 id="breaks">What it would break</h2>
      ${
        breaks.length === 0
          ? html`<p class="card pad calm"><span class="lamp" data-tone="well"></span>Nothing that is known of.</p>`
          : html`<ul class="card needs">
              ${breaks.map(
                (each, index) => html`
                  <li key=${index}>
                    <span class="lamp" data-tone="goes"></span>
                    <p>${breakText(each, at, cluster)}</p>
                  </li>
                `,
              )}
            </ul>`
      }
      ${
        guard.shadow &&
        guard.trips.length > 0 &&
        html`<p class="soft small">The guard would tell, and hold nothing: its policy says dryRun.</p>`
      }
    </section>
    ${unknown.map((sentence) => html`<p key=${sentence} class="soft">${sentence}</p>`)}
    <section class="section" aria-labelledby="workloads">
      <div class="lead">
        <h2 id="workloads">By workload</h2>
        <p class="soft small">${paceText(pace, at)}</p>
      </div>
      <${Rows}
        label="Workloads" wrap
        columns=${WORKLOAD_COLUMNS(at)}
        rows=${workloads}
        keyOf=${({ namespace, kind, name }: WorkloadFate) => `${namespace}/${kind}/${name}`}
      />
    </section>
    ${
      budgets.length > 0 &&
      html`<section class="section" aria-labelledby="budgets">
        <h2 id="budgets">Disruption budgets</h2>
        <${Rows}
          label="Disruption budgets" wrap
          columns=${BUDGET_COLUMNS}
          rows=${budgets}
          keyOf=${({ namespace, name }: BudgetFate) => `${namespace}/${name ?? ''}`}
        />
      </section>`
    }
  `;
}

function breakText(each: Break, at: number, cluster: string): VNode | string {
  switch (each.kind) {
    case 'guard': {
      const { scope, zone, nodes, outOf } = each.trip;
      const where = scope === 'zone' ? `zone ${zone ?? ''}` : 'the cluster';
      return `The guard would trip: ${nodes} of ${counted(outOf, 'node')} in ${where}. It then holds these pods.`;
    }
    case 'budget': {
      const { namespace, name, together, allowed, blocked, heeded } = each.budget;
      const limit = allowed === undefined ? '' : `, and it allows ${allowed}`;
      const whose =
        name === undefined ? `A disruption budget in ${namespace}` : `Disruption budget ${namespace}/${name}`;
      const how = `${counted(together, 'ready pod goes', 'ready pods go')} together${limit}`;
      return `${whose}: ${how}${blocked > 0 ? `; the Eviction API refuses ${blocked}` : ''}. ${heeded ? 'These wait for it.' : 'Deleting does not ask it.'}`;
    }
    case 'bare-pod':
      return html`Nothing runs <${PodLink} cluster=${cluster} namespace=${each.namespace} pod=${each.name} />: nobody makes it
        anew once it has gone (${momentText(each.at, at)}).`;
    case 'emptied':
      return `All ready pods of ${each.workload.kind} ${each.workload.namespace}/${each.workload.name} go together.`;
    default:
      return each satisfies never;
  }
}

const paceText = ({ rate, lastAt, drain }: Answer['pace'], at: number): string =>
  [
    rate === undefined ? 'No rate limit' : `${rate} pods a second`,
    ...(lastAt === undefined
      ? []
      : [lastAt <= at ? 'all at once' : `the last after ${spanText(lastAt - at)}`]),
    `what is held goes at ${drain} a second when it is let go`,
  ].join('; ');

const NONE = html`<span class="soft">0</span>`;

const STAYS: Readonly<Record<WorkloadFate['stays'][number]['because'], string>> = {
  hold: STANDING.hold.text,
  excluded: STANDING.excluded.text,
  'node-alive': STANDING['node-alive'].text,
  tolerated: 'tolerate it for ever',
  untainted: 'not concerned',
  leaving: 'leaving already',
  'gave-up': STANDING['gave-up'].text,
  unknown: 'not known',
};

const WORKLOAD_COLUMNS = (at: number): readonly Column<WorkloadFate>[] => [
  {
    key: 'workload',
    head: 'Workload',
    width: 'minmax(10rem, 2fr)',
    cell: ({ namespace, kind, name }) =>
      html`<span class="soft">${namespace}/</span>${name} <span class="soft small">${kind === 'Pod' ? 'bare pod' : kind}</span>`,
  },
  {
    key: 'now',
    head: 'Now',
    width: '4rem',
    numeric: true,
    cell: ({ now }) => (now > 0 ? html`<span class="failed strong">${now}</span>` : NONE),
  },
  {
    key: 'later',
    head: 'Later',
    width: 'minmax(8rem, 1fr)',
    numeric: true,
    cell: ({ later: { pods, firstAt, lastAt } }) => {
      if (pods === 0 || firstAt === undefined || lastAt === undefined) return NONE;
      const [first, last] = [spanText(firstAt - at), spanText(lastAt - at)];
      return html`${pods} <span class="soft">after ${first === last ? first : `${first} – ${last}`}</span>`;
    },
  },
  {
    key: 'stays',
    head: 'Stay',
    width: 'minmax(4rem, 1.4fr)',
    numeric: true,
    cell: ({ stays }) =>
      stays.length === 0
        ? NONE
        : stays.map(
            ({ because, hold, pods }) =>
              html`<div key=${`${because} ${hold}`}>${pods} <span class="soft">${hold ?? STAYS[because]}</span></div>`,
          ),
  },
  {
    key: 'replicas',
    head: 'Ready in all',
    width: '7rem',
    numeric: true,
    cell: ({ replicas }) =>
      replicas ? `${replicas.ready} of ${replicas.desired}` : html`<span class="soft">not known</span>`,
  },
];

const BUDGET_COLUMNS: readonly Column<BudgetFate>[] = [
  {
    key: 'budget',
    head: 'Budget',
    width: 'minmax(10rem, 2fr)',
    cell: ({ namespace, name }) => html`<span class="soft">${namespace}/</span>${name ?? 'not readable'}`,
  },
  {
    key: 'breaks',
    head: 'Verdict',
    width: '6rem',
    cell: ({ breaks }) =>
      html`<span class=${breaks ? 'failed strong' : ''}>${breaks ? 'breaks' : 'holds'}</span>`,
  },
  { key: 'going', head: 'Going', width: '5rem', numeric: true, cell: ({ going }) => going },
  { key: 'together', head: 'Together', width: '6rem', numeric: true, cell: ({ together }) => together },
  {
    key: 'allowed',
    head: 'Allowed',
    width: '6rem',
    numeric: true,
    cell: ({ allowed }) => allowed ?? html`<span class="soft">not known</span>`,
  },
  {
    key: 'known',
    head: 'How known',
    width: 'minmax(8rem, 2fr)',
    cell: ({ known, why, reason }) =>
      html`<span class="soft" title=${reason ?? why}>${known === 'asked' ? 'the Eviction API was asked' : `by its status: ${why ?? ''}`}</span>`,
  },
];
