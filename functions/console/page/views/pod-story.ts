import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { TaintAccount } from '#shared/explain/taints.ts';
import type { PodStory as Story } from '#shared/operations/ask/explain-pod.ts';
import { placeText, remedyText, tolerationText } from '#shared/operations/ask/words.ts';
import { taintText } from '#shared/taints/taint.ts';
import { ActButton, holdPods, releaseHold } from '../act-button.ts';
import { Command } from '../command.ts';
import { now } from '../live.ts';
import { Countdown, Failed, Moment, NodeLink, Section, Tag, Title } from '../parts.ts';
import { href, route } from '../route.ts';
import { type Column, column, Rows } from '../rows.ts';
import { useAnswer } from '../use-answer.ts';
import { sentence, type Tone } from '../words.ts';
import { Around, localText, Past } from './story.ts';

/** A pod's story: whether and when it is evicted, the reasons, and how to keep it. */
export function PodStory(): VNode {
  const [, cluster = '', namespace = '', pod = ''] = route.value.path;
  const { answer, error } = useAnswer('GET api/explain/pod', () => ({ cluster, namespace, pod }), [
    cluster,
    namespace,
    pod,
  ]);
  const held = answer?.gates.flatMap(({ by }) => (by.kind === 'hold' ? [by.id] : [])) ?? [];
  const all = answer && heldWith(answer);
  const { kind, name } = answer?.workload ?? answer?.owner ?? { kind: 'Pod', name: pod };
  const there = answer !== undefined && !PAST.includes(answer.outcome.kind);
  return html`
    <${Title} title=${`${namespace}/${pod}`} lead=${answer ? html`<${Where} answer=${answer} />` : error === undefined ? 'Loading …' : 'Unknown'}>
      ${held.map((id) => html`<${ActButton} key=${id} intent=${releaseHold(cluster, id)} text=${`Release hold ${id}`} />`)}
      ${there && held.length === 0 && html`<${ActButton} intent=${holdPods(cluster, { kind: 'pod', namespace, name: pod })} text="Hold pod" icon="hold" />`}
      ${
        there &&
        held.length === 0 &&
        all &&
        html`<${ActButton}
          intent=${holdPods(cluster, { kind: 'workload', namespace, owner: all })}
          text=${`Hold ${all.kind} ${all.name}`}
        />`
      }
      ${there && html`<a class="button" href=${href(['tolerations', cluster, namespace, kind, name])}>Tolerations</a>`}
    </${Title}>
    ${error !== undefined && html`<${Failed} error=${error} />`}
    ${
      answer &&
      html`
        <${Verdict} answer=${answer} />
        ${
          answer.taints.length > 0 &&
          html`<${Section} id="taints" title="Taints and tolerations">
            <${Rows}
              label="Taints of the node" wrap
              columns=${TAINT_COLUMNS}
              rows=${answer.taints}
              keyOf=${({ taint }: TaintAccount) => taintText(taint)}
            />
          </${Section}>`
        }
        <${Around} answer=${answer} about="pod" />
        <${Remediations} ...${answer} />
        <${Past} entries=${answer.history.toReversed()} />
      `
    }
  `;
}

const PAST: readonly Story['outcome']['kind'][] = ['evicted', 'deleted', 'not-found', 'terminating'];

/** Workloads above a pod's owner that a hold can match. */
const HELD_WHOLE: readonly string[] = ['Deployment', 'CronJob'];

const heldWith = ({ workload, owner }: Story): Story['owner'] =>
  workload && HELD_WHOLE.includes(workload.kind) ? { kind: workload.kind, name: workload.name } : owner;

function Where({ answer: { cluster, node, owner, workload, outcome } }: { readonly answer: Story }): VNode {
  const runner = workload ?? owner;
  const nowhere = outcome.kind === 'unknown' ? 'node unknown' : 'not scheduled';
  return html`
    ${runner && html`${runner.kind} ${runner.name} · `}
    ${node === undefined ? nowhere : html`on <${NodeLink} ...${{ cluster, node }} />`} · ${cluster}
  `;
}

function Verdict({ answer }: { readonly answer: Story }): VNode {
  const { outcome } = answer;
  const at = outcome.kind === 'evict' && outcome.at > now.value ? outcome.at : undefined;
  return html`
    <div class="card verdict" data-tone=${TONES[outcome.kind]}>
      ${at !== undefined && html`<p class="big" aria-hidden="true"><${Countdown} at=${at} /></p>`}
      <p>${localText(answer.headline, answer.at)}</p>
    </div>
  `;
}

const TONES: Readonly<Record<Story['outcome']['kind'], Tone | undefined>> = {
  evict: 'goes',
  failed: 'goes',
  evicted: 'goes',
  held: 'held',
  blocked: 'held',
  terminating: 'held',
  unknown: 'held',
  keep: 'well',
  deleted: undefined,
  'not-found': undefined,
};

const TAINT_COLUMNS: readonly Column<TaintAccount>[] = [
  column(
    { key: 'taint', head: 'Taint', width: 'minmax(10rem, 2.6fr)' },
    ({ taint, decides }) => html`
      <span class="taint" title=${taintText(taint)}>${taintText(taint)}</span>${decides && html` <${Tag} text="decisive" tone="goes" />`}
    `,
  ),
  column(
    { key: 'deadline', head: 'Deadline', width: 'minmax(6rem, 0.8fr)', numeric: true },
    ({ deadlineAt, evicts }) =>
      deadlineAt !== undefined
        ? html`<${Moment} at=${deadlineAt} />`
        : html`<span class="soft">${evicts === 'no' ? 'does not evict' : 'none'}</span>`,
  ),
  column({ key: 'toleration', head: 'Toleration', width: 'minmax(9rem, 1.6fr)' }, (account) => {
    const later = account.shadowed.map(placeText);
    const shadowed = later.length === 0 ? '' : `, takes precedence over ${later.join(', ')}`;
    const text = `${tolerationText(account)}${shadowed}`;
    return html`<span title=${text}>${text}</span>`;
  }),
  column(
    { key: 'since', head: 'Since', width: 'minmax(8rem, 1fr)' },
    ({ since, known }) =>
      since !== undefined &&
      html`<${Moment} at=${since} /> <span class="soft small">${known === 'preexisting' ? 'first seen' : known}</span>`,
  ),
  column({ key: 'schedules', head: 'New pods', width: 'minmax(6rem, 0.8fr)' }, ({ schedules }) =>
    schedules ? 'can be scheduled' : html`<span class="soft">not scheduled</span>`,
  ),
];

const Remediations = ({ remediations, builtIn }: Story): VNode | undefined =>
  remediations.length === 0
    ? undefined
    : html`
        <${Section} id="saves" title="How to keep this pod">
          <ul class="card needs">
            ${remediations.map(
              (remedy) => html`
                <li key=${JSON.stringify(remedy)}>
                  <p>${sentence(remedyText(remedy, builtIn))}${'command' in remedy && html`<${Command} text=${remedy.command} />`}</p>
                </li>
              `,
            )}
          </ul>
        </${Section}>
      `;
