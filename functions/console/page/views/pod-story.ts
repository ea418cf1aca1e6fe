import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { jobText } from '#shared/explain/job.ts';
import type { Remedy } from '#shared/explain/remedies.ts';
import type { TaintAccount } from '#shared/explain/taints.ts';
import type { PodStory as Story } from '#shared/operations/ask/explain-pod.ts';
import { durationText } from '#shared/time/duration.ts';
import { ActButton, holdPod, holdWorkload, releaseHold } from '../act-button.ts';
import { now } from '../live.ts';
import { Countdown, Failed, Moment, NodeLink, Tag, Title } from '../parts.ts';
import { route } from '../route.ts';
import { type Column, Rows } from '../rows.ts';
import { get } from '../server.ts';
import { useAnswer } from '../use-answer.ts';
import { type Tone, taintText } from '../words.ts';
import { Around, localText, Past } from './story.ts';

/** A pod's story: whether and when it is evicted, the reasons, and how to keep it. */
export function PodStory(): VNode {
  const [, cluster = '', namespace = '', pod = ''] = route.value.path;
  const response = useAnswer(
    (signal) => get('GET api/explain/pod', { cluster, namespace, pod }, signal),
    [cluster, namespace, pod],
    true,
  );
  const answer = response.kind === 'answered' ? response.answer : undefined;
  const held = answer?.gates.flatMap(({ by }) => (by.kind === 'hold' ? [by.id] : [])) ?? [];
  const all = answer && heldWith(answer);
  const there = answer !== undefined && !PAST.includes(answer.outcome.kind);
  return html`
    <${Title} title=${`${namespace}/${pod}`} lead=${answer ? html`<${Where} answer=${answer} />` : 'Loading …'}>
      ${held.map((id) => html`<${ActButton} key=${id} intent=${releaseHold(cluster, id)} text=${`Release hold ${id}`} />`)}
      ${there && held.length === 0 && html`<${ActButton} intent=${holdPod(cluster, namespace, pod)} text="Hold pod" icon="hold" />`}
      ${
        there &&
        held.length === 0 &&
        all &&
        html`<${ActButton}
          intent=${holdWorkload(cluster, namespace, all)}
          text=${`Hold ${all.kind} ${all.name}`}
        />`
      }
    </${Title}>
    ${response.kind === 'failed' && html`<${Failed} error=${response.error} />`}
    ${
      answer &&
      html`
        <${Verdict} answer=${answer} />
        ${
          answer.taints.length > 0 &&
          html`<section class="section" aria-labelledby="taints">
            <h2 id="taints">Taints and tolerations</h2>
            <${Rows}
              label="Taints of the node" wrap
              columns=${TAINT_COLUMNS}
              rows=${answer.taints}
              keyOf=${({ taint }: TaintAccount) => taintText(taint)}
            />
          </section>`
        }
        <${Around} ...${answer} further=${answer.scheduling ? [['Scheduling', schedulingText(answer.scheduling)]] : []} />
        <${Remediations} remediations=${answer.remediations} />
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

function Where({ answer: { cluster, node, owner, workload } }: { readonly answer: Story }): VNode {
  const runner = workload ?? owner;
  return html`
    ${runner && html`${runner.kind} ${runner.name} · `}
    ${node === undefined ? 'not scheduled' : html`on <${NodeLink} ...${{ cluster, node }} />`} · ${cluster}
  `;
}

function Verdict({ answer }: { readonly answer: Story }): VNode {
  const { outcome } = answer;
  const at = outcome.kind === 'evict' && outcome.at > now.value ? outcome.at : undefined;
  return html`
    <div class="card verdict" data-tone=${toneOf(outcome.kind)}>
      ${at !== undefined && html`<p class="big" aria-hidden="true"><${Countdown} at=${at} /></p>`}
      <p>${localText(answer.headline, answer.at)}</p>
    </div>
  `;
}

function toneOf(kind: Story['outcome']['kind']): Tone | undefined {
  switch (kind) {
    case 'evict':
    case 'failed':
    case 'evicted':
      return 'goes';
    case 'held':
    case 'blocked':
    case 'terminating':
    case 'unknown':
      return 'held';
    case 'keep':
      return 'well';
    case 'deleted':
    case 'not-found':
      return undefined;
    default:
      return kind satisfies never;
  }
}

const TAINT_COLUMNS: readonly Column<TaintAccount>[] = [
  {
    key: 'taint',
    head: 'Taint',
    width: 'minmax(10rem, 2.6fr)',
    cell: ({ taint, decides }) => html`
      <span class="taint" title=${taintText(taint)}>${taintText(taint)}</span>${decides && html` <${Tag} text="decisive" tone="goes" />`}
    `,
  },
  {
    key: 'deadline',
    head: 'Deadline',
    width: 'minmax(6rem, 0.8fr)',
    numeric: true,
    cell: ({ deadlineAt, evicts }) =>
      deadlineAt !== undefined
        ? html`<${Moment} at=${deadlineAt} />`
        : html`<span class="soft">${evicts === 'no' ? 'does not evict' : 'none'}</span>`,
  },
  {
    key: 'toleration',
    head: 'Toleration',
    width: 'minmax(9rem, 1.6fr)',
    cell: (account) => {
      const text = tolerationText(account);
      return html`<span title=${text}>${text}</span>`;
    },
  },
  {
    key: 'since',
    head: 'Since',
    width: 'minmax(8rem, 1fr)',
    cell: ({ since, known }) =>
      since !== undefined &&
      html`<${Moment} at=${since} /> <span class="soft small">${known === 'preexisting' ? 'first seen' : known}</span>`,
  },
  {
    key: 'schedules',
    head: 'New pods',
    width: 'minmax(6rem, 0.8fr)',
    cell: ({ schedules }) => (schedules ? 'can be scheduled' : html`<span class="soft">not scheduled</span>`),
  },
];

function tolerationText({ toleration, shadowed, seconds, changedBy, evicts }: TaintAccount): string {
  const later = shadowed.map(({ index }) => `tolerations[${index}]`).join(', ');
  const first =
    toleration === undefined
      ? 'none'
      : `tolerations[${toleration.index}], ${seconds === undefined || evicts === 'no' ? 'indefinitely' : `for ${durationText(seconds * 1_000)}`}`;
  return [
    first,
    ...(changedBy === undefined ? [] : [`changed by policy (${changedBy})`]),
    ...(later === '' ? [] : [`takes precedence over ${later}`]),
  ].join('; ');
}

function schedulingText(scheduling: NonNullable<Story['scheduling']>): string {
  const { replacedBy, keptOffBy, loops, finished, job } = scheduling;
  const taints = keptOffBy.map(taintText).join(', ');
  if (finished) return 'It has finished: only its object and its logs are deleted.';
  if (replacedBy === 'daemonset' && taints !== '')
    return `Its DaemonSet does not recreate it on this node: ${taints} prevents this.`;
  if (replacedBy === 'kubelet')
    return 'Its kubelet continues to run it, because it is a static pod, and recreates its mirror pod.';
  const who = job
    ? `Its Job ${jobText(job)}.`
    : {
        nobody: 'No controller recreates it.',
        controller: 'Its controller recreates it on some node.',
        daemonset: 'Its DaemonSet recreates it on this node.',
      }[replacedBy];
  if (loops)
    return `${who} The new pod can be scheduled here and evicted again, because schedulers ignore tolerationSeconds.`;
  if (taints === '' || replacedBy === 'nobody') return who;
  return `${who} ${taints} prevents scheduling on this node.`;
}

const Remediations = ({ remediations }: { readonly remediations: readonly Remedy[] }): VNode | undefined =>
  remediations.length === 0
    ? undefined
    : html`
        <section class="section" aria-labelledby="saves">
          <h2 id="saves">How to keep this pod</h2>
          <ul class="card needs">
            ${remediations.map(
              (remedy) => html`
                <li key=${JSON.stringify(remedy)}>
                  <p>${remedyText(remedy)}${'command' in remedy && html`<code class="command">${remedy.command}</code>`}</p>
                </li>
              `,
            )}
          </ul>
        </section>
      `;

function remedyText(remedy: Remedy): string {
  switch (remedy.kind) {
    case 'tolerate':
      return 'Let the pod tolerate the taint indefinitely. For future pods, add the toleration to the template of their workload.';
    case 'untaint':
      return `Remove the taint ${taintText(remedy.taint)}.`;
    case 'fix-node':
      return 'Bring the node back. The node controller then removes its taints.';
    case 'hold':
      return 'Hold the pod, by the button above or on the command line.';
    default:
      return remedy satisfies never;
  }
}
