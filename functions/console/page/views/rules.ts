import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { ClusterStatus } from '#functions/operator/status.ts';
import type { AuditEntry } from '#shared/clusters/rulebook.ts';
import {
  ActButton,
  pauseCluster,
  releaseGuard,
  releaseHold,
  resumeCluster,
  retry,
  stopCluster,
  unpauseCluster,
} from '../act-button.ts';
import { useAsked } from '../asked.ts';
import { clusters, status } from '../live.ts';
import { ClusterChoice, Empty, Failed, Moment, Tag, Title } from '../parts.ts';
import { href, route } from '../route.ts';
import { type Column, Rows } from '../rows.ts';
import { get } from '../server.ts';
import { modeOf, targetText } from '../words.ts';

/** What governs a cluster: its policy, what people and the guard hold there, and who said so. */
export function RulesView(): VNode {
  const [, named] = route.value.path;
  const known =
    clusters.value.find(({ cluster }) => cluster === named) ?? (named ? undefined : clusters.value[0]);
  if (!known) {
    return html`
      <${Title} title="Rules" />
      ${status.value && html`<${Empty} title=${named ? `There is no cluster ${named}` : 'No cluster is managed yet'}>What governs a cluster stands here.</${Empty}>`}
    `;
  }
  const { cluster } = known;
  return html`
    <${Title}
      title=${`Rules of ${cluster}`}
      lead=${html`<${Tag} ...${modeOf(known, status.value?.stop !== undefined)} />${' '}${modeText(known)}`}
    >
      <${Acts} of=${known} />
    </${Title}>
    <search class="filters">
      <${ClusterChoice}
        all=${false}
        value=${cluster}
        onChoice=${(value: string) => {
          location.hash = href(['rules', value]);
        }}
      />
    </search>
    <${Forbids} of=${known} />
    <${Policy} cluster=${cluster} />
    <${Audit} cluster=${cluster} />
  `;
}

function modeText({ mode, pausedUntil, stop }: ClusterStatus): VNode | string {
  if (mode !== 'observe' && (stop || status.value?.stop))
    return 'Nothing is deleted until evictions are resumed.';
  switch (mode) {
    case 'observe':
      return 'Everything is decided and told; nothing is deleted.';
    case 'enforce':
      return 'Pods are evicted when their time is over.';
    case 'paused':
      return pausedUntil === undefined
        ? 'Nothing is deleted until somebody ends the pause.'
        : html`Nothing is deleted until <${Moment} at=${pausedUntil} />.`;
    case undefined:
      return 'What governs it cannot be read.';
    default:
      return mode satisfies never;
  }
}

const Acts = ({ of: { cluster, mode, stop, gaveUp = 0 } }: { readonly of: ClusterStatus }): VNode => html`
  ${gaveUp > 0 && html`<${ActButton} intent=${retry(cluster)} />`}
  ${
    mode === 'paused'
      ? html`<${ActButton} intent=${unpauseCluster(cluster)} icon="resume" />`
      : mode === 'enforce' && html`<${ActButton} intent=${pauseCluster(cluster)} icon="hold" />`
  }
  ${
    stop
      ? html`<${ActButton} intent=${resumeCluster(cluster)} icon="resume" />`
      : html`<${ActButton} intent=${stopCluster(cluster)} icon="stop" look="edged" />`
  }
`;

/** What people and the guard keep from being evicted. */
function Forbids({
  of: { cluster, mode, stop, holds = [], trips = [] },
}: {
  readonly of: ClusterStatus;
}): VNode {
  const none = mode !== undefined && !stop && holds.length === 0 && trips.length === 0;
  return html`
    <section class="section" aria-labelledby="forbids">
      <h2 id="forbids">Stops, holds and the guard</h2>
      ${
        none
          ? html`<${Empty} title="Nothing is held">
              A hold keeps a pod, a workload or a node's pods from being evicted, for as long as it stands: put one from a pod's or
              a node's story, or from the list of what is pending.
            </${Empty}>`
          : html`<ul class="card needs">
              ${
                stop &&
                html`<li>
                  <span class="lamp" data-tone="goes"></span>
                  <p>Evictions are stopped${untilText(stop.until)}: ${stop.why} <span class="soft small">${stop.who}, <${Moment} at=${stop.at} /></span></p>
                  <${ActButton} intent=${resumeCluster(cluster)} />
                </li>`
              }
              ${trips.map(
                ({ scope, zone, nodes, outOf, trippedAt }) => html`<li key=${`${scope} ${zone}`}>
                  <span class="lamp" data-tone="held"></span>
                  <p>
                    The guard holds${' '}${scope === 'zone' ? `zone ${zone ?? ''}` : scope === 'people' ? 'what people tainted' : 'the cluster'}:
                    ${' '}${nodes} of ${outOf} nodes <span class="soft small">since <${Moment} at=${trippedAt} /></span>
                  </p>
                  <${ActButton} intent=${releaseGuard(cluster)} />
                </li>`,
              )}
              ${holds.map(
                ({ id, target, why, who, at, until }) => html`<li key=${id}>
                  <span class="lamp" data-tone="held"></span>
                  <p>
                    <strong>${targetText(target)}</strong>${untilText(until)}: ${why}
                    ${' '}<span class="soft small">${id}, ${who}, <${Moment} at=${at} /></span>
                  </p>
                  <${ActButton} intent=${releaseHold(cluster, id)} about=${targetText(target)} />
                </li>`,
              )}
            </ul>`
      }
    </section>
  `;
}

const untilText = (until: number | undefined): VNode | string =>
  until === undefined ? '' : html`${' '}until <${Moment} at=${until} />`;

function Policy({ cluster }: { readonly cluster: string }): VNode {
  const asked = useAsked((signal) => get('GET api/policy', { cluster }, signal), [cluster], true);
  const revision = asked.kind === 'answered' ? asked.answer.revision : 0;
  return html`
    <section class="section" aria-labelledby="policy">
      <div class="lead">
        <h2 id="policy">Policy</h2>
        <p class="soft small">
          ${revision === 0 ? 'the default: none was applied' : `revision ${revision}`} · changed by
          ${' '}<code>taintward policy apply</code>
        </p>
      </div>
      ${asked.kind === 'failed' && html`<${Failed} error=${asked.error} />`}
      ${asked.kind === 'answered' && html`<pre class="card pad" tabindex="0" aria-label="Policy document">${asked.answer.text}</pre>`}
    </section>
  `;
}

function Audit({ cluster }: { readonly cluster: string }): VNode {
  const asked = useAsked((signal) => get('GET api/audit', { cluster }, signal), [cluster], true);
  const entries = asked.kind === 'answered' ? asked.answer : [];
  return html`
    <section class="section" aria-labelledby="audit">
      <h2 id="audit">Audit</h2>
      ${asked.kind === 'failed' && html`<${Failed} error=${asked.error} />`}
      ${
        asked.kind === 'answered' && entries.length === 0
          ? html`<${Empty} title="Nobody has said anything yet">Each policy, stop, hold and release stands here: when, who, what and why.</${Empty}>`
          : html`<${Rows} label="Audit" wrap columns=${AUDIT_COLUMNS} rows=${entries} keyOf=${auditKey} />`
      }
    </section>
  `;
}

const auditKey = ({ at, kind, who, what }: AuditEntry): string => `${at} ${kind} ${who} ${what}`;

const AUDIT_COLUMNS: readonly Column<AuditEntry>[] = [
  {
    key: 'what',
    head: 'What',
    width: 'minmax(10rem, 2fr)',
    cell: ({ cluster, what }) =>
      html`${what}${cluster === undefined && html` <${Tag} text="all clusters" />`}`,
  },
  { key: 'at', head: 'When', width: 'minmax(5rem, 0.8fr)', cell: ({ at }) => html`<${Moment} at=${at} />` },
  {
    key: 'why',
    head: 'Why',
    width: 'minmax(8rem, 2fr)',
    cell: ({ why }) => html`<span title=${why}>${why}</span>`,
  },
  {
    key: 'who',
    head: 'Who',
    width: 'minmax(8rem, 1.4fr)',
    cell: ({ who }) => html`<span class="soft" title=${who}>${who}</span>`,
  },
];
