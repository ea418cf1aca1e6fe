import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Issue } from '#shared/conditions/conditions.ts';
import type { PendingRow } from '#shared/console/api.ts';
import type { ClusterStatus, FleetStatus } from '#shared/operations/look/status.ts';
import { durationText } from '#shared/time/duration.ts';
import { ActButton, resumeEvictions, retry, stopEvictions } from '../act-button.ts';
import { clusters, now, pending, session, staleSince, status } from '../live.ts';
import { counted } from '../moments.ts';
import { Ago, Empty, PodLink, Section, Tag, TimeLeft, Title } from '../parts.ts';
import { href } from '../route.ts';
import { type Column, column, Rows } from '../rows.ts';
import { connectionWord, modeOf, STATE_WORDS } from '../words.ts';
import { DemoNodes } from './demo.ts';
import { GuardCard } from './guard-card.ts';
import { NextHour } from './next-hour.ts';
import { localText } from './story.ts';

/** Required actions, the next evictions, and the state of each cluster. */
export function Overview(): VNode {
  const known = status.value;
  const { demo, place } = session.value ?? {};
  const counts = clusters.value.flatMap((each) => each.pending ?? []);
  const total = counted(
    counts.reduce((sum, count) => sum + count, 0),
    'pending eviction',
  );
  const lead = `${counted(clusters.value.length, 'cluster')}, ${counts.length < clusters.value.length ? 'at least ' : ''}${total}${place ? ` · ${place}` : ''}`;
  return html`
    <${Title} title="Overview" lead=${known ? lead : 'Loading …'} />
    ${known && html`<${Issues} issues=${known.issues} unknown=${staleSince.value === undefined ? known.unknown : ['The current state is not known.']} />`}
    ${demo && html`<${DemoNodes} cluster=${demo.cluster} />`}
    <section class="next" aria-labelledby="next-hour">
      <${NextHour} />
      <${NextToGo} />
    </section>
    <${Section} id="clusters" title="Clusters">
      ${
        known && known.clusters.length === 0
          ? html`<${Empty} title="No clusters">
              To register a cluster, run <code>npx taintward clusters add</code>. It starts in observe mode.
            </${Empty}>`
          : html`<${Rows}
              label="Clusters" wrap
              columns=${CLUSTER_COLUMNS}
              rows=${clusters.value}
              keyOf=${({ cluster }: ClusterStatus) => cluster}
            />`
      }
    </${Section}>
  `;
}

const Issues = ({ issues, unknown }: Pick<FleetStatus, 'issues' | 'unknown'>): VNode => html`
  <${Section} id="needs" title="Action required">
    ${
      issues.length === 0
        ? html`<p class="card pad calm">
            <span class="lamp" data-tone=${unknown.length > 0 ? 'held' : 'well'}></span>
            <span>${unknown.length > 0 ? 'Unknown whether an action is required.' : 'No action required.'} <span class="soft">${unknown.join(' ')}</span></span>
          </p>`
        : html`<ul class="card needs">
            ${issues.map(
              (need) => html`
                <li key=${`${need.type} ${need.cluster} ${need.message}`}>
                  <span class="lamp" data-tone=${need.severity === 'warning' ? 'held' : 'goes'}></span>
                  <p>
                    ${need.cluster !== undefined && html`<a class="strong" href=${href(['rules', need.cluster])}>${need.cluster}</a> `}${localText(need.message, now.value)}
                    ${need.since !== undefined && html` <span class="soft small">for <${Ago} at=${need.since} /></span>`}
                  </p>
                  <${Remedy} ...${need} />
                </li>
              `,
            )}
          </ul>`
    }
  </${Section}>
`;

function Remedy({ type, cluster, scope, stop }: Issue): VNode | string | undefined {
  const see = (path: string, text: string) =>
    html`<a class="button" href=${href([path], { cluster: cluster ?? '' })}>${text}</a>`;
  switch (type) {
    case 'guard-tripped':
      return cluster && scope && html`<${GuardCard} ...${{ cluster, scope }} />`;
    case 'stopped':
      return html`<${ActButton} intent=${resumeEvictions(cluster, stop)} about=${cluster} />`;
    case 'failed':
      return html`<div class="buttons">
        ${see('pending', 'Show pods')}
        ${cluster && html`<${ActButton} intent=${retry(cluster)} about=${`in ${cluster}`} />`}
      </div>`;
    case 'stuck-terminating':
    case 'delayed':
      return see('pending', 'Show pods');
    default:
      // The console has no action for this issue.
      return undefined;
  }
}

/** The next evictions as text, which screen readers can read instead of the timeline. */
function NextToGo(): VNode {
  const next = soonest(5);
  return html`
    <div class="card pad soonest">
      <h2>Next evictions</h2>
      ${
        next.length === 0
          ? html`<p class="soft">${noneText()}</p>`
          : html`<ol>
              ${next.map(
                ([uid, cluster, node, namespace, pod, dueAt, state, , , , nextTryAt]) => html`
                  <li key=${uid}>
                    <span class="left"><${TimeLeft} ...${{ dueAt, state, nextTryAt }} /></span>
                    <span class="who">
                      <${PodLink} ...${{ cluster, namespace, pod }} />
                      <span class="soft small">${state === 'scheduled' ? '' : `${STATE_WORDS[state].text} · `}${node}</span>
                    </span>
                  </li>
                `,
              )}
            </ol>`
      }
    </div>
  `;
}

/** Why no eviction comes next: there are none, or something keeps all of them. */
function noneText(): string {
  if (!pending.value) return 'Loading …';
  const rows = [...pending.value.values()];
  if (rows.length === 0) return 'No pending evictions. Pods appear here when a node is tainted.';
  const kept = [...Map.groupBy(rows, ([, , , , , , state]) => state)];
  return `None: ${kept.map(([state, { length }]) => `${number(length)} ${STATE_WORDS[state].text}`).join(', ')}.`;
}

function soonest(most: number): readonly PendingRow[] {
  const going = [...(pending.value?.values() ?? [])].filter(([, , , , , , state]) => GOING.includes(state));
  const next = ([, , , , , dueAt, , , , , nextTryAt = dueAt]: PendingRow) => nextTryAt;
  return going.sort((a, b) => next(a) - next(b)).slice(0, most);
}

const GOING: readonly PendingRow[6][] = ['scheduled', 'due', 'rate-limited', 'blocked', 'rejected'];

const number = (count: number | undefined): string => count?.toLocaleString('en') ?? '?';

const CLUSTER_COLUMNS: readonly Column<ClusterStatus>[] = [
  column(
    { key: 'name', head: 'Cluster', width: 'minmax(6rem, 1.6fr)' },
    ({ cluster, error }) => html`
      <a class="strong" href=${href(['rules', cluster])}>${cluster}</a>
      ${error !== undefined && html` <span class="failed small">${error}</span>`}
    `,
  ),
  column(
    { key: 'mode', head: 'Mode', width: 'minmax(6.75rem, 0.9fr)' },
    (each) => html`<${Tag} ...${modeOf(each)} />`,
  ),
  column(
    { key: 'built-in', head: 'Built-in', minor: true, width: 'minmax(4.75rem, 0.6fr)' },
    ({ builtIn }) =>
      html`<span title=${builtIn?.evidence} class=${builtIn?.state === 'on' || builtIn?.state === 'off' ? '' : 'soft'}>${builtIn?.state ?? '?'}</span>`,
  ),
  column(
    { key: 'tainted', head: 'Tainted', width: 'minmax(4.5rem, 0.6fr)', numeric: true },
    ({ cluster, tainted, nodes }) => html`
      <a href=${href(['nodes'], { cluster })}>${number(tainted)}</a>
      ${nodes !== undefined && html`<span class="soft"> of ${number(nodes)}</span>`}
    `,
  ),
  column(
    { key: 'pending', head: 'Pending', width: 'minmax(3.5rem, 0.6fr)', numeric: true },
    ({ cluster, pending: count }) => html`<a href=${href(['pending'], { cluster })}>${number(count)}</a>`,
  ),
  column({ key: 'held', head: 'Held', width: 'minmax(2.5rem, 0.4fr)', numeric: true }, ({ held }) =>
    number(held),
  ),
  column(
    { key: 'delay', head: 'Delay', width: 'minmax(3.5rem, 0.6fr)', numeric: true },
    ({ delayMs = 0, pending: count }) =>
      count === undefined
        ? '?'
        : delayMs === 0
          ? html`<span class="soft">none</span>`
          : durationText(delayMs),
  ),
  column(
    { key: 'contact', head: 'Last contact', width: 'minmax(7.5rem, 0.8fr)' },
    ({ connection, lastContactAt }) => {
      const isOld = connection === 'stale' || connection === 'disconnected';
      const { text, tone } = connectionWord(staleSince.value === undefined ? connection : undefined);
      return html`<span class="heard"><span class="lamp" data-tone=${tone}></span><span>${text}${
        isOld && lastContactAt !== undefined && html`, <${Ago} at=${lastContactAt} /> ago`
      }</span></span>`;
    },
  ),
  column(
    { key: 'acts', head: 'Actions', unseen: true, width: 'minmax(6.5rem, 1.2fr)' },
    ({ cluster, stop }) => html`<div class="buttons">
      ${stop && html`<${ActButton} intent=${resumeEvictions(cluster, stop.id)} about=${cluster} icon="resume" />`}
      <${ActButton} intent=${stopEvictions(cluster)} about=${cluster} icon="stop" kind="edged" />
    </div>`,
  ),
];
