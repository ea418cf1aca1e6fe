import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { NodeStory as Story } from '#functions/operator/explain-node.ts';
import type { NodePod, NodeTaint } from '#shared/explain/node.ts';
import { ActButton, holdNode, releaseHold, retry } from '../act-button.ts';
import { useAsked } from '../asked.ts';
import { clusters } from '../live.ts';
import { counted } from '../moments.ts';
import { Ago, Countdown, Empty, Failed, Moment, PodLink, Tag, Title } from '../parts.ts';
import { route } from '../route.ts';
import { type Column, Rows } from '../rows.ts';
import { get } from '../server.ts';
import { STANDING, type Tone, taintText, WHAT } from '../words.ts';
import { Around, localText, Past } from './story.ts';

/** What becomes of a node's pods, and why. */
export function NodeStory(): VNode {
  const [, cluster = '', node = ''] = route.value.path;
  const asked = useAsked(
    (signal) => get('GET api/explain/node', { cluster, node }, signal),
    [cluster, node],
    true,
  );
  const answer = asked.kind === 'answered' ? asked.answer : undefined;
  const hold = clusters.value
    .find((each) => each.cluster === cluster)
    ?.holds?.find(({ target }) => target.kind === 'node' && target.node === node);
  const gaveUp = answer?.pods.some(({ fate }) => fate.kind === 'gave-up') ?? false;
  return html`
    <${Title} title=${node} lead=${answer ? html`<${Where} answer=${answer} />` : 'Asking the server …'}>
      ${gaveUp && html`<${ActButton} intent=${retry(cluster, node)} />`}
      ${
        hold
          ? html`<${ActButton} intent=${releaseHold(cluster, hold.id)} text=${`Release hold ${hold.id}`} />`
          : html`<${ActButton} intent=${holdNode(cluster, node)} text="Hold its pods" icon="hold" />`
      }
    </${Title}>
    ${asked.kind === 'failed' && html`<${Failed} error=${asked.error} />`}
    ${
      answer &&
      html`
        <p class="card verdict">${localText(answer.headline, answer.at)}</p>
        <${Taints} taints=${answer.taints} />
        <section class="section" aria-labelledby="pods">
          <h2 id="pods">Its pods</h2>
          ${
            answer.pods.length === 0
              ? html`<${Empty} title="No pod is here">What runs on the node, and what becomes of it, stands here.</${Empty}>`
              : html`<${Rows}
                  label="Pods of the node"
                  columns=${podColumns(cluster)}
                  rows=${answer.pods}
                  keyOf=${({ uid }: NodePod) => uid}
                />`
          }
        </section>
        <${Around} ...${answer} />
        <${Past}
          entries=${answer.history
            .toReversed()
            .map((entry) => ({ ...entry, pod: { cluster, namespace: entry.namespace, pod: entry.name } }))}
        />
      `
    }
  `;
}

function Where({ answer: { cluster, zone, state, deletedAt, pods } }: { readonly answer: Story }): VNode {
  const what =
    state === 'gone'
      ? html`gone${deletedAt === undefined ? '' : html`, <${Ago} at=${deletedAt} /> ago`}`
      : state === 'unknown'
        ? 'what it is like cannot be seen'
        : counted(pods.length, 'pod');
  return html`${what}${zone === undefined ? '' : ` · ${zone}`} · ${cluster}`;
}

const Taints = ({ taints }: { readonly taints: readonly NodeTaint[] }): VNode =>
  taints.length === 0
    ? html`<${Empty} title="The node has no taint">Its pods stay. A NoExecute taint evicts those that do not tolerate it.</${Empty}>`
    : html`<ul class="card needs">
        ${taints.map(
          ({ taint, evicts, since, known }) => html`<li key=${taintText(taint)}>
            <p>
              <span class="taint">${taintText(taint)}</span>
              ${evicts === 'no' && html` <span class="soft">only keeps pods from being scheduled here</span>`}
              ${evicts === 'virtual' && html` <span class="soft">counts as NoExecute by policy</span>`}
            </p>
            ${since !== undefined && html`<span class="soft">${known === 'found' ? 'found' : 'appeared'} <${Ago} at=${since} /> ago</span>`}
          </li>`,
        )}
      </ul>`;

const FATE: Readonly<Record<NodePod['fate']['kind'], readonly [text: string, tone?: Tone]>> = {
  goes: ['goes', 'goes'],
  held: ['held', 'held'],
  blocked: [WHAT.blocked.text, 'held'],
  'gave-up': [STANDING['gave-up'].text, 'goes'],
  stays: ['stays', 'well'],
  leaving: ['leaving', 'goes'],
  unknown: ['not known', 'held'],
};

const podColumns = (cluster: string): readonly Column<NodePod>[] => [
  {
    key: 'pod',
    head: 'Pod',
    width: 'minmax(11rem, 2.4fr)',
    cell: ({ namespace, name }) => html`<${PodLink} ...${{ cluster, namespace, pod: name }} />`,
  },
  {
    key: 'fate',
    head: 'What becomes of it',
    width: 'minmax(8rem, 1fr)',
    cell: ({ fate: { kind } }) => html`<${Tag} text=${FATE[kind][0]} tone=${FATE[kind][1]} />`,
  },
  {
    key: 'in',
    head: 'In',
    width: 'minmax(5rem, 0.6fr)',
    numeric: true,
    cell: ({ fate }) =>
      fate.kind === 'goes' ? html`<span class="left"><${Countdown} at=${fate.at} /></span>` : '',
  },
  {
    key: 'due',
    head: 'Deadline',
    width: 'minmax(6rem, 0.8fr)',
    numeric: true,
    cell: ({ fate }) =>
      'dueAt' in fate && fate.dueAt !== undefined ? html`<${Moment} at=${fate.dueAt} />` : '',
  },
  {
    key: 'workload',
    head: 'Workload',
    width: 'minmax(9rem, 1.6fr)',
    cell: ({ owner, workload }) => {
      const runner = workload ?? owner;
      return runner ? `${runner.kind} ${runner.name}` : html`<span class="soft">none</span>`;
    },
  },
];
