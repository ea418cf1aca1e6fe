import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { TolerationsShown as Answer } from '#shared/console/api.ts';
import type { ToleratedTaint, TolerationForecast } from '#shared/explain/toleration-preview.ts';
import type { TolerationObject } from '#shared/operations/ask/tolerations.ts';
import { forecastText, tolerationText } from '#shared/operations/ask/words.ts';
import { taintText } from '#shared/taints/taint.ts';
import { tolerationProblems } from '#shared/taints/tolerations.ts';
import { ActButton } from '../act-button.ts';
import { quoted } from '../act-command.ts';
import { type Intent, shownMessage } from '../acts.ts';
import { Command } from '../command.ts';
import { Choice, TextField } from '../fields.ts';
import { now } from '../live.ts';
import { Failed, NodeLink, PodLink, Section, Tag, Title } from '../parts.ts';
import { href, route } from '../route.ts';
import { type Column, Rows } from '../rows.ts';
import { get, sentenceOf } from '../server.ts';

/** A toleration as typed. */
type Draft = Readonly<Record<'key' | 'operator' | 'value' | 'effect' | 'seconds', string>>;

const NONE = { key: '', operator: 'Equal', value: '', effect: '', seconds: '' };
const TARGETS = Object.entries({ '': 'the template', pods: 'running pods' });
/** Each field has a placeholder, or options. */
const FIELDS = [
  ['key', 'Key', 'every key'],
  ['operator', 'Operator', ['Exists', 'Equal', 'Lt', 'Gt']],
  ['value', 'Value', ''],
  ['effect', 'Effect', ['', 'NoExecute', 'NoSchedule', 'PreferNoSchedule']],
  ['seconds', 'Seconds', 'indefinitely'],
] as const;

/** A preview reads all nodes: it waits until nobody types, and is not repeated with each eviction. */
const TYPED_MS = 400;
const REFRESHED_MS = 30_000;

/** The tolerations of a workload or pod: edited, checked as they are typed, previewed, and changed. */
export function Tolerations(): VNode {
  const { path } = route.value;
  const [, cluster = '', namespace = '', kind = '', name = '', pods = ''] = path;
  const [drafts, setDrafts] = useState<readonly Draft[] | undefined>(undefined);
  const [outcome, setOutcome] = useState<{ answer?: Answer; error?: string; request?: string }>({});
  const { answer, error = '' } = outcome;
  const adds = kind === 'Pod' || pods !== '';
  const current = answer?.current.map(draftOf) ?? [];
  const own = drafts ?? (adds ? [] : current);
  const rows = [...own, ...(adds ? current : []), ...(answer?.added.map(draftOf) ?? [])];
  const problems = problemsIn(rows);
  const list = drafts && JSON.stringify(drafts.map(objectOf));
  const request = problems.length > 0 ? 'none' : `${list}`;
  useEffect(() => {
    const aborted = new AbortController();
    const settle = (found: typeof outcome) => {
      if (!aborted.signal.aborted) setOutcome((last) => ({ ...last, error: '', ...found, request }));
    };
    const ask = () =>
      get('GET api/tolerations', { cluster, namespace, kind, name, list, pods }, aborted.signal).then(
        (found) => settle({ answer: found }),
        (thrown: unknown) => settle({ error: sentenceOf(thrown) }),
      );
    const waits = request === 'none' ? undefined : setTimeout(() => void ask(), TYPED_MS);
    return () => {
      clearTimeout(waits);
      aborted.abort();
    };
    // After a change, it is previewed again.
  }, [request, Math.floor(now.value / REFRESHED_MS), shownMessage.value]);
  const isPreviewed = outcome.request === request;
  const replace = (at: number, ...news: readonly Draft[]) => setDrafts(own.toSpliced(at, 1, ...news));
  return html`
    <${Title}
      title=${`Tolerations of ${namespace}/${name}`}
      lead=${`${kind} · ${adds ? 'added to running pods, before those that they keep' : "the template's list"} · ${cluster}`}
    >
      ${kind !== 'Pod' && html`<${Choice} label="Applies to" value=${pods} options=${TARGETS} onChoice=${(value: string) => location.assign(href([...path.slice(0, 5), value].filter(Boolean)))} />`}
    </${Title}>
    <div class="section">
      ${rows.map(
        (draft, index) => html`
          <fieldset key=${index} class="card pad toleration" disabled=${index >= own.length} aria-label=${`Toleration ${index}`}>
            <span class="mono soft">[${index}]</span>
            ${FIELDS.map(([field, label, choice]) => {
              const props = { label, value: draft[field] };
              const set = (text: string) => replace(index, { ...draft, [field]: text });
              return typeof choice === 'string'
                ? html`<${TextField} key=${field} ...${props} placeholder=${choice} onText=${set} />`
                : html`<${Choice} key=${field} ...${props} options=${choice.map((each) => [each, each || 'every effect'])} onChoice=${set} />`;
            })}
            ${
              index < own.length
                ? html`<span class="buttons">
                    <button type="button" class="button plain" disabled=${index === 0} onClick=${() => setDrafts(own.toSpliced(index, 1).toSpliced(index - 1, 0, draft))}>Up</button>
                    <button type="button" class="button plain" onClick=${() => replace(index)}>Remove</button>
                  </span>`
                : html`<${Tag} text=${adds ? 'of the pods' : 'added to pods'} />`
            }
            ${problems.map((text) => text.startsWith(`tolerations[${index}].`) && html`<p key=${text} class="failed" role="alert">${text}</p>`)}
            ${isPreviewed && answer?.ineffective.map(({ toleration, rule, message, remediation }) => toleration === index && html`<p key=${rule}><${Tag} text=${rule} tone="held" /> ${message} ${remediation}</p>`)}
          </fieldset>
        `,
      )}
      <div class="buttons">
        <button type="button" class="button" disabled=${!answer} onClick=${() => setDrafts([...own, { ...NONE, operator: 'Exists', effect: 'NoExecute' }])}>Add toleration</button>
      </div>
    </div>
    <p class="soft" role="status">${request === 'none' ? 'The preview follows once each field is valid.' : !isPreviewed && 'Loading …'}</p>
    ${isPreviewed && (error === '' ? html`<${Preview} ...${{ answer, drafts, adds }} />` : html`<${Failed} error=${error} />`)}
  `;
}

const draftOf = ({ tolerationSeconds: seconds, ...fields }: TolerationObject): Draft => ({
  ...NONE,
  ...fields,
  seconds: String(seconds ?? ''),
});

const filled = (fields: object) => Object.entries(fields).filter(([, text]) => text !== '');

const objectOf = ({ seconds, ...fields }: Draft): TolerationObject => ({
  ...Object.fromEntries(filled(fields)),
  ...(seconds === '' ? {} : { tolerationSeconds: Number(seconds) }),
});

/** The server also knows whether its API server supports Lt and Gt. */
const problemsIn = (drafts: readonly Draft[]): readonly string[] => [
  ...tolerationProblems(drafts.map(objectOf), { comparisonOperators: true }).map(({ message }) => message),
  ...drafts.flatMap(({ seconds }, index) =>
    /^(-?\d{1,15})?$/.test(seconds) ? [] : `tolerations[${index}].tolerationSeconds must be a whole number.`,
  ),
];

/** Without drafts, nothing is changed. */
type PreviewProps = { readonly answer: Answer; readonly drafts?: readonly Draft[]; readonly adds: boolean };

function Preview({ answer, drafts, adds }: PreviewProps): VNode {
  const { cluster, namespace, kind, name, faults, obstacles, effects, commands, refusal } = answer;
  const target = ['tolerations', `${namespace}/${kind}/${name}`, ...(adds ? ['--pods'] : [])];
  const sets = drafts?.flatMap((draft) => ['--set', String(filled(draft).map((pair) => pair.join('=')))]);
  const apply = ['taintward', ...target, ...(sets ?? []), '--context', 'CONTEXT', '--apply'];
  const change = { namespace, kind, name, list: drafts?.map(objectOf) ?? [], pods: adds };
  const draft = { kind: 'change-tolerations', cluster, change } as const;
  const intent: Intent = { title: 'Change these tolerations?', verb: 'Change', draft };
  return html`
    ${faults.map((text) => html`<${Failed} key=${text} error=${text} />`)}
    <${Section} id="pods" title="Pods">
      <${Rows}
        label="Pods" wrap columns=${podColumns(cluster, now.value).slice(0, drafts ? 4 : 3)} rows=${answer.pods}
        keyOf=${(pod: TolerationForecast) => `${pod.namespace}/${pod.name}`}
      />
    </${Section}>
    <${Section} id="taints" title="Taints of today's nodes">
      <${Rows} label="Taints of today's nodes" wrap columns=${TAINT_COLUMNS} rows=${answer.taints} keyOf=${JSON.stringify} />
    </${Section}>
    ${
      drafts &&
      html`<${Section} id="change" title="Make the change">
        <ul class="card needs">${[...obstacles, ...effects].map((text) => html`<li key=${text}><p>${text}</p></li>`)}</ul>
        ${commands.length > 0 && (refusal === undefined ? html`<div class="buttons"><${ActButton} intent=${intent} text="Change tolerations" kind="main" /></div>` : html`<p>${refusal}</p>`)}
        <p class="soft">Or copy what you need. CONTEXT is the kubeconfig context of your own credentials.</p>
        ${commands.length > 0 && drafts.length > 0 && html`<${Command} text=${apply.map(quoted).join(' ')} />`}
        ${commands.length > 0 && html`<${Command} text=${commands.join('\n')} />`}
        ${!adds && html`<${Command} text=${['tolerations:', ...drafts.map((draft) => `- ${JSON.stringify(objectOf(draft))}`)].join('\n')} />`}
      </${Section}>`
    }
  `;
}

function column<Row>(head: string, cell: Column<Row>['cell'], width = 'minmax(7rem, 1fr)'): Column<Row> {
  return { key: head, head, width, cell };
}
const WIDE = 'minmax(11rem, 2fr)';

const TAINT_COLUMNS: readonly Column<ToleratedTaint>[] = [
  column('Taint', ({ taint }) => html`<span class="taint">${taintText(taint)}</span>`, WIDE),
  column('Toleration', tolerationText),
  column('Evicts', ({ evicts }) => (evicts === 'virtual' ? 'by policy' : evicts), '5rem'),
  column('New pods', ({ schedules }) => (schedules ? 'can be scheduled' : 'not scheduled')),
  column('Nodes', ({ nodes }) => nodes, '4rem'),
];

const podColumns = (cluster: string, at: number): readonly Column<TolerationForecast>[] => [
  column('Pod', ({ namespace, name: pod }) => html`<${PodLink} ...${{ cluster, namespace, pod }} />`, WIDE),
  column('Node', ({ node }) => node && html`<${NodeLink} ...${{ cluster, node }} />`),
  column('Now', ({ before }) => forecastText(before, at)),
  column('With this list', ({ after }) => (after ? forecastText(after, at) : 'scheduled to another node')),
];
