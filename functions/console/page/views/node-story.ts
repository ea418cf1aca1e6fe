import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { NodePod, NodeTaint } from '#shared/explain/node.ts';
import type { NodeStory as Story } from '#shared/operations/ask/explain-node.ts';
import { taintText } from '#shared/taints/taint.ts';
import { ActButton, holdPods, releaseHold, retry } from '../act-button.ts';
import { clusters } from '../live.ts';
import { counted } from '../moments.ts';
import { Ago, Countdown, Empty, Failed, Moment, PodLink, Section, Tag, Title } from '../parts.ts';
import { route } from '../route.ts';
import { type Column, column, Rows } from '../rows.ts';
import { useAnswer } from '../use-answer.ts';
import { EVENT, STATE_WORDS, type Tone } from '../words.ts';
import { Around, localText, Past } from './story.ts';

/** A node's story: the outcome for each of its pods, and the reasons. */
export function NodeStory(): VNode {
  const [, cluster = '', node = ''] = route.value.path;
  const { answer, error } = useAnswer('GET api/explain/node', () => ({ cluster, node }), [cluster, node]);
  const hold = clusters.value
    .find((each) => each.cluster === cluster)
    ?.holds?.find(({ target }) => target.kind === 'node' && target.node === node);
  const gaveUp = answer?.pods.some(({ outcome }) => outcome.kind === 'failed') ?? false;
  return html`
    <${Title} title=${node} lead=${answer ? html`<${Where} answer=${answer} />` : error === undefined ? 'Loading …' : 'Unknown'}>
      ${gaveUp && html`<${ActButton} intent=${retry(cluster, node)} />`}
      ${
        hold
          ? html`<${ActButton} intent=${releaseHold(cluster, hold.id)} text=${`Release hold ${hold.id}`} />`
          : html`<${ActButton} intent=${holdPods(cluster, { kind: 'node', node })} text="Hold pods" icon="hold" />`
      }
    </${Title}>
    ${error !== undefined && html`<${Failed} error=${error} />`}
    ${
      answer &&
      html`
        <p class="card verdict">${localText(answer.headline, answer.at)}</p>
        <${Taints} taints=${answer.taints} />
        <${Section} id="pods" title="Pods">
          ${
            answer.pods.length === 0
              ? html`<${Empty} title="No pods">The pods of this node appear here, with what happens to each.</${Empty}>`
              : html`<${Rows}
                  label="Pods of the node"
                  columns=${podColumns(cluster)}
                  rows=${answer.pods}
                  keyOf=${({ uid }: NodePod) => uid}
                />`
          }
        </${Section}>
        <${Around} answer=${answer} about="node" />
        <${Past} named
          entries=${answer.history.toReversed()}
        />
      `
    }
  `;
}

function Where({ answer: { cluster, zone, state, deletedAt, pods } }: { readonly answer: Story }): VNode {
  const what =
    state === 'gone'
      ? html`deleted${deletedAt === undefined ? '' : html` <${Ago} at=${deletedAt} /> ago`}`
      : state === 'unknown'
        ? 'state unknown'
        : counted(pods.length, 'pod');
  return html`${what}${zone === undefined ? '' : ` · ${zone}`} · ${cluster}`;
}

const Taints = ({ taints }: { readonly taints: readonly NodeTaint[] }): VNode =>
  taints.length === 0
    ? html`<${Empty} title="No taints">A NoExecute taint evicts the pods that do not tolerate it.</${Empty}>`
    : html`<ul class="card needs">
        ${taints.map(
          ({ taint, evicts, since, known }) => html`<li key=${taintText(taint)}>
            <p>
              <span class="taint">${taintText(taint)}</span>
              ${evicts === 'no' && html` <span class="soft">prevents scheduling only</span>`}
              ${evicts === 'virtual' && html` <span class="soft">evicts by policy (treatAsNoExecute)</span>`}
            </p>
            ${since !== undefined && html`<span class="soft">${known === 'preexisting' ? 'first seen' : 'added'} <${Ago} at=${since} /> ago</span>`}
          </li>`,
        )}
      </ul>`;

const OUTCOME: Readonly<Record<NodePod['outcome']['kind'], readonly [text: string, tone?: Tone]>> = {
  evict: ['evict', 'goes'],
  held: ['held', 'held'],
  blocked: [EVENT.blocked.text, 'held'],
  failed: [STATE_WORDS.failed.text, 'goes'],
  keep: ['keep', 'well'],
  terminating: ['terminating', 'goes'],
  unknown: ['unknown', 'held'],
};

const podColumns = (cluster: string): readonly Column<NodePod>[] => [
  column(
    { key: 'pod', head: 'Pod', width: 'minmax(11rem, 2.4fr)' },
    ({ namespace, name }) => html`<${PodLink} ...${{ cluster, namespace, pod: name }} />`,
  ),
  column(
    { key: 'outcome', head: 'Outcome', width: 'minmax(8rem, 1fr)' },
    ({ outcome: { kind } }) => html`<${Tag} text=${OUTCOME[kind][0]} tone=${OUTCOME[kind][1]} />`,
  ),
  column({ key: 'in', head: 'In', width: 'minmax(5rem, 0.6fr)', numeric: true }, ({ outcome }) =>
    outcome.kind === 'evict'
      ? html`<span class="left">${outcome.pacedBy ? '≥ ' : ''}<${Countdown} at=${outcome.at} /></span>`
      : '',
  ),
  column({ key: 'due', head: 'Deadline', width: 'minmax(6rem, 0.8fr)', numeric: true }, ({ outcome }) =>
    'dueAt' in outcome && outcome.dueAt !== undefined ? html`<${Moment} at=${outcome.dueAt} />` : '',
  ),
  column({ key: 'workload', head: 'Workload', width: 'minmax(9rem, 1.6fr)' }, ({ owner, workload }) => {
    const runner = workload ?? owner;
    return runner ? `${runner.kind} ${runner.name}` : html`<span class="soft">none</span>`;
  }),
];
