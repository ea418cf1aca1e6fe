import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';
import type { TimedTaint } from '#shared/eviction/records.ts';
import type { PendingState } from '#shared/operations/look/pending-state.ts';
import { taintText } from '#shared/taints/taint.ts';
import { durationText } from '#shared/time/duration.ts';
import { timeText } from '#shared/time/time-text.ts';
import { now } from './live.ts';
import { momentText } from './moments.ts';
import { href } from './route.ts';
import type { Tone } from './words.ts';

/** A word whose color has the same meaning. */
export const Tag = ({ text, tone }: { readonly text: string; readonly tone?: Tone | undefined }): VNode =>
  html`<span class="tag" data-tone=${tone}>${text}</span>`;

/** Time left until a deadline, to the second. */
export const Countdown = ({ at }: { readonly at: number }): VNode =>
  html`<time dateTime=${timeText(at)} title=${timeText(at)}>${durationText(Math.ceil((at - now.value) / 1000) * 1000)}</time>`;

interface TimeLeftProps {
  readonly dueAt: number;
  readonly state: PendingState;
  readonly nextTryAt?: number;
}

/** Time left until an eviction is tried, or since its deadline. */
export function TimeLeft({ dueAt, state, nextTryAt = dueAt }: TimeLeftProps): VNode {
  if (nextTryAt > now.value) return html`<${Countdown} at=${nextTryAt} />`;
  return state === 'scheduled' || state === 'due' ? html`now` : html`<${Ago} at=${dueAt} /> ago`;
}

/** A time, short if it is near. */
export const Moment = ({ at }: { readonly at: number }): VNode =>
  html`<time dateTime=${timeText(at)} title=${timeText(at)}>${momentText(at, now.value)}</time>`;

/** Time since an event. */
export const Ago = ({ at }: { readonly at: number }): VNode =>
  html`<time dateTime=${timeText(at)} title=${timeText(at)}>${durationText(now.value - at)}</time>`;

export const Taints = ({ taints }: { readonly taints: readonly TimedTaint[] }): VNode =>
  html`${taints.map((taint) => html`<span key=${taintText(taint)} class="taint">${taintText(taint)}</span> `)}`;

interface PodLinkProps {
  readonly cluster: string;
  readonly namespace: string;
  readonly pod: string;
}

/** Length of the end of a name by which the pods of a workload differ. */
const SUFFIX = 6;

/** A link to a pod's story. Where it has too little room, its name is cut off before the suffix. */
export function PodLink({ cluster, namespace, pod }: PodLinkProps): VNode {
  const name = `${namespace}/${pod}`;
  return html`<a href=${href(['pod', cluster, namespace, pod])} title=${name} aria-label=${name}><span class="stem"><span class="soft">${namespace}/</span>${pod.slice(0, -SUFFIX)}</span>${pod.slice(-SUFFIX)}</a>`;
}

/** A link to a node's story, without the domain of its name. Where it has too little room, the name is cut off in the middle. */
export function NodeLink({ cluster, node }: { readonly cluster: string; readonly node: string }): VNode {
  // Of an IP address, all parts are needed.
  const host = node.replace(/^([^.]*[a-z][^.]*)\..*$/, '$1');
  return html`<a href=${href(['node', cluster, node])} title=${node} aria-label=${node}><span class="stem">${host.slice(0, -SUFFIX)}</span>${host.slice(-SUFFIX)}</a>`;
}

export interface Titled {
  readonly title: string;
  readonly children?: ComponentChildren;
}

/** A description of the content, in place of an empty list. */
export const Empty = ({ title, children }: Titled): VNode => html`
  <div class="empty">
    <strong>${title}</strong>
    <p>${children}</p>
  </div>
`;

export const Failed = ({ error }: { readonly error: string }): VNode =>
  html`<p class="card pad failed" role="alert">${error}</p>`;

interface TitleProps extends Titled {
  readonly lead?: ComponentChildren;
}

/** Title of a view. It receives the focus when the view opens. */
export const Title = ({ title, lead, children }: TitleProps): VNode => html`
  <div class="title">
    <div>
      <h1 tabindex="-1">${title}</h1>
      ${lead !== undefined && html`<div class="soft">${lead}</div>`}
    </div>
    ${children !== undefined && html`<div class="buttons">${children}</div>`}
  </div>
`;

interface SectionProps extends Titled {
  /** ID of its heading. */
  readonly id: string;
  /** Stands beside the heading. */
  readonly note?: ComponentChildren;
}

/** A part of a view, with a heading. */
export const Section = ({ id, title, note, children }: SectionProps): VNode => html`
  <section class="section" aria-labelledby=${id}>
    <div class="lead">
      <h2 id=${id}>${title}</h2>
      ${note !== undefined && html`<p class="soft small">${note}</p>`}
    </div>
    ${children}
  </section>
`;
