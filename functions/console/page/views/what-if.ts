import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { BudgetForecast, WorkloadForecast } from '#shared/explain/what-if.ts';
import type { WhatIfAnswer as Answer } from '#shared/operations/ask/what-if.ts';
import { breakText, paceText, provisosOf } from '#shared/operations/ask/words.ts';
import { taintText } from '#shared/taints/taint.ts';
import { durationText } from '#shared/time/duration.ts';
import { ClusterChoice, TextField } from '../fields.ts';
import { clusters } from '../live.ts';
import { counted } from '../moments.ts';
import { Empty, Failed, Section, Title } from '../parts.ts';
import { querySetter, route } from '../route.ts';
import { type Column, column, Rows } from '../rows.ts';
import { get, sentenceOf } from '../server.ts';
import { STATE_WORDS } from '../words.ts';

/** Previews the effect of a taint on nodes. Changes nothing. */
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
    <${Title} title="What if" lead="Previews which pods a taint would evict. Changes nothing." />
    <form
      class="filters"
      onSubmit=${(event: Event) => {
        event.preventDefault();
        if (!busy) void find();
      }}
    >
      <${ClusterChoice} all=${false} value=${cluster} onChoice=${querySetter('cluster')} />
      <${TextField} label="Taint" value=${taint} onText=${querySetter('taint')} />
      <${TextField}
        label="Nodes (names or label selector)"
        wide
        value=${nodes}
        placeholder="all nodes"
        onText=${querySetter('nodes')}
      />
      <button type="submit" class="button main" disabled=${busy || cluster === ''}>
        ${busy ? 'Loading …' : 'Preview'}
      </button>
    </form>
    <div class="section answer" aria-live="polite">
      ${error !== '' && html`<${Failed} error=${error} />`}
      ${
        answer
          ? html`<${Outcome} answer=${answer} />`
          : error === '' &&
            html`<${Empty} title="No preview yet">
              Enter a taint in kubectl syntax, and nodes by name (<code>node-1, node-2</code>) or label
              (<code>topology.kubernetes.io/zone=zone-a</code>). The preview shows which pods would be evicted now or later, which
              disruption budgets would break, which pods no controller recreates, and whether the guard would trip.
            </${Empty}>`
      }
    </div>
  `;
}

const isSelector = (text: string): boolean => /[=!()]/.test(text);

const names = (text: string): string => (text.match(/[^\s,]+/g) ?? []).join();

function Outcome({ answer }: { readonly answer: Answer }): VNode {
  const { at, taint, nodes, pods, now, later, keep, guarded, breaks, workloads, budgets } = answer;
  const numbers: readonly (readonly [number, string, string | undefined])[] = [
    [now, 'evicted now', now > 0 ? 'goes' : undefined],
    [later, 'evicted later', later > 0 ? 'held' : undefined],
    [keep, 'kept', undefined],
  ];
  return html`
    <p>
      <strong>${taintText(taint)}</strong> on ${counted(nodes.length, 'node')} with ${counted(pods, 'pod')}:
    </p>
    <dl class="numbers card">
      ${numbers.map(
        ([count, text, tone]) =>
          html`<div key=${text} data-tone=${tone}><dt>${text}</dt><dd>${count.toLocaleString('en')}</dd></div>`,
      )}
    </dl>
    ${provisosOf(answer).map((text) => html`<p key=${text} class="card pad">${text}</p>`)}
    <${Section} id="breaks" title="What breaks">
      ${
        breaks.length === 0
          ? html`<p class="card pad calm"><span class="lamp" data-tone="well"></span>Nothing breaks.</p>`
          : html`<ul class="card needs">
              ${breaks.map(
                (broken, index) =>
                  html`<li key=${index}><span class="lamp" data-tone="goes"></span><p>${breakText(broken, guarded)}</p></li>`,
              )}
            </ul>`
      }
    </${Section}>
    <${Section} id="workloads" title="By workload" note=${paceText(answer)}>
      <${Rows}
        label="Workloads" wrap
        columns=${WORKLOAD_COLUMNS(at)}
        rows=${workloads}
        keyOf=${({ namespace, kind, name }: WorkloadForecast) => `${namespace}/${kind}/${name}`}
      />
    </${Section}>
    ${
      budgets.length > 0 &&
      html`<${Section} id="budgets" title="Disruption budgets">
        <${Rows}
          label="Disruption budgets" wrap
          columns=${BUDGET_COLUMNS}
          rows=${budgets}
          keyOf=${({ namespace, name }: BudgetForecast) => `${namespace}/${name ?? ''}`}
        />
      </${Section}>`
    }
  `;
}

const NONE = html`<span class="soft">0</span>`;

const STAYS: Readonly<Record<WorkloadForecast['keep'][number]['cause'], string>> = {
  hold: STATE_WORDS.hold.text,
  excluded: STATE_WORDS.excluded.text,
  'node-alive': STATE_WORDS['node-alive'].text,
  recreated: STATE_WORDS.recreated.text,
  tolerated: 'tolerate it indefinitely',
  untainted: 'not affected',
  terminating: 'terminating already',
  failed: STATE_WORDS.failed.text,
  unknown: 'unknown',
};

const WORKLOAD_COLUMNS = (at: number): readonly Column<WorkloadForecast>[] => [
  column(
    { key: 'workload', head: 'Workload', width: 'minmax(10rem, 2fr)' },
    ({ namespace, kind, name }) =>
      html`<span class="soft">${namespace}/</span>${name} <span class="soft small">${kind === 'Pod' ? 'bare pod' : kind}</span>`,
  ),
  column({ key: 'now', head: 'Now', width: '4rem', numeric: true }, ({ now }) =>
    now > 0 ? html`<span class="failed strong">${now}</span>` : NONE,
  ),
  column(
    { key: 'later', head: 'Later', width: 'minmax(8rem, 1fr)', numeric: true },
    ({ later: { pods, firstAt, lastAt } }) => {
      if (pods === 0 || firstAt === undefined || lastAt === undefined) return NONE;
      const [first, last] = [durationText(firstAt - at), durationText(lastAt - at)];
      return html`${pods} <span class="soft">after ${first === last ? first : `${first} – ${last}`}</span>`;
    },
  ),
  column({ key: 'stays', head: 'Kept', width: 'minmax(4rem, 1.4fr)', numeric: true }, ({ keep }) =>
    keep.length === 0
      ? NONE
      : keep.map(
          ({ cause, hold, pods }) =>
            html`<div key=${`${cause} ${hold}`}>${pods} <span class="soft">${hold ?? STAYS[cause]}</span></div>`,
        ),
  ),
  column({ key: 'replicas', head: 'Ready', width: '7rem', numeric: true }, ({ replicas }) =>
    replicas ? `${replicas.ready} of ${replicas.desired}` : html`<span class="soft">unknown</span>`,
  ),
];

const BUDGET_COLUMNS: readonly Column<BudgetForecast>[] = [
  column(
    { key: 'budget', head: 'Budget', width: 'minmax(10rem, 2fr)' },
    ({ namespace, name }) => html`<span class="soft">${namespace}/</span>${name ?? 'not readable'}`,
  ),
  column(
    { key: 'breaks', head: 'Result', width: '6rem' },
    ({ breaks }) => html`<span class=${breaks ? 'failed strong' : ''}>${breaks ? 'breaks' : 'ok'}</span>`,
  ),
  column({ key: 'going', head: 'Evicted', width: '5rem', numeric: true }, ({ evicted }) => evicted),
  column({ key: 'together', head: 'Together', width: '6rem', numeric: true }, ({ together }) => together),
  column(
    { key: 'allowed', head: 'Allowed', width: '6rem', numeric: true },
    ({ allowed }) => allowed ?? html`<span class="soft">unknown</span>`,
  ),
  column(
    { key: 'known', head: 'Source', width: 'minmax(8rem, 2fr)' },
    ({ source, error, reason }) =>
      html`<span class="soft" title=${reason ?? error}>${source === 'eviction-api' ? 'Eviction API' : `budget status: ${error ?? ''}`}</span>`,
  ),
];
