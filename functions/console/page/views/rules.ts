import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { TripReport } from '#shared/eviction/guard.ts';
import { scopeText } from '#shared/explain/gate-text.ts';
import { targetText } from '#shared/operations/acts/act.ts';
import type { ClusterStatus } from '#shared/operations/look/status.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import {
  ActButton,
  releaseGuard,
  releaseHold,
  resumeEvictions,
  retry,
  stopEvictions,
} from '../act-button.ts';
import { Changes } from '../acts.ts';
import { ClusterChoice } from '../fields.ts';
import { clusters, status } from '../live.ts';
import { Empty, Failed, Moment, Section, Tag, Title } from '../parts.ts';
import { href, route } from '../route.ts';
import { type Column, column, Rows } from '../rows.ts';
import { useAnswer } from '../use-answer.ts';
import { modeOf } from '../words.ts';
import { type Opened, PolicyEditor } from './policy-editor.ts';

/** The rules of a cluster: its policy, stops, holds, guard trips, and audit log. */
export function RulesView(): VNode {
  const [, named] = route.value.path;
  const known =
    clusters.value.find(({ cluster }) => cluster === named) ?? (named ? undefined : clusters.value[0]);
  if (!known) {
    return html`
      <${Title} title="Rules" />
      ${status.value && html`<${Empty} title=${named ? `Cluster ${named} not found` : 'No clusters'}>The policy, stops, and holds of a cluster appear here.</${Empty}>`}
    `;
  }
  const { cluster } = known;
  return html`
    <${Title}
      title=${`Rules of ${cluster}`}
      lead=${html`<${Tag} ...${modeOf(known)} />${' '}${modeText(known)}`}
    >
      <${Acts} ...${known} />
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
    <${Forbids} ...${known} />
    <${Recorded} cluster=${cluster} />
  `;
}

function modeText({ mode, stop, trips = [], connection }: ClusterStatus): VNode | string {
  if (mode === 'enforce' && stop)
    return stop.until === undefined
      ? 'Evictions are stopped: no pods are evicted until you resume them.'
      : html`No pods are evicted${untilText(stop.until)}.`;
  switch (mode) {
    case 'observe':
      return 'Decisions are recorded, and no pods are evicted.';
    case 'enforce':
      if (connection !== 'connected')
        return 'No current connection to the cluster: evictions may be delayed or missed.';
      return trips.length === 0
        ? 'Pods are evicted at their deadlines.'
        : `The guard holds ${trips.map(guardedText).join(', and ')}. Other pods are evicted at their deadlines.`;
    case undefined:
      return 'Its policy cannot be read. For the cause, run taintward doctor.';
    default:
      return mode satisfies never;
  }
}

const guardedText = ({ scope, zone = 'unknown' }: TripReport): string =>
  `evictions ${{ cluster: 'of the cluster', customTaints: 'by custom taints', zone: `of zone ${zone}` }[scope]}`;

const Acts = ({ cluster, stop, failed = 0 }: ClusterStatus): VNode => html`
  ${failed > 0 && html`<${ActButton} intent=${retry(cluster)} />`}
  ${stop && html`<${ActButton} intent=${resumeEvictions(cluster, stop.id)} icon="resume" />`}
  <${ActButton} intent=${stopEvictions(cluster)} icon="stop" kind="edged" />
`;

function Forbids({ cluster, mode, stop, holds = [], trips = [], releasedScopes = [] }: ClusterStatus): VNode {
  const none = mode !== undefined && !stop && [...holds, ...trips, ...releasedScopes].length === 0;
  return html`
    <${Section} id="forbids" title="Stops, holds, and guard">
      ${
        none
          ? html`<${Empty} title="No stops or holds">
              A hold prevents a pod, the pods of a workload, or the pods of a node from being evicted. To add a hold, open a pod or a node.
            </${Empty}>`
          : html`<ul class="card needs">
              ${
                stop &&
                html`<li>
                  <span class="lamp" data-tone="goes"></span>
                  <p>Evictions are stopped${stop.scope === 'fleet' ? ' in all clusters' : ''}${untilText(stop.until)}: ${stop.reason} <span class="soft small">${stop.actor}, <${Moment} at=${stop.at} /></span></p>
                  <${ActButton} intent=${resumeEvictions(cluster, stop.id)} />
                </li>`
              }
              ${trips.map(
                (trip) => html`<li key=${scopeText(trip)}>
                  <span class="lamp" data-tone="held"></span>
                  <p>
                    The guard holds ${guardedText(trip)}:
                    ${' '}${trip.nodes} of ${trip.total} nodes at the trip${trip.affectedNow === undefined ? '' : `, ${trip.affectedNow} now`} <span class="soft small"><${Moment} at=${trip.trippedAt} /></span>
                  </p>
                  <${ActButton} intent=${releaseGuard(cluster, scopeText(trip))} about=${`for ${scopeText(trip)}`} />
                </li>`,
              )}
              ${releasedScopes.map(
                ({ scope, tripsAbove }) => html`<li key=${scope}>
                  <span class="lamp"></span>
                  <p>
                    The guard is released for ${scope}. It holds evictions again when
                    ${' '}${tripsAbove === undefined ? 'more nodes' : `more than ${tripsAbove} nodes`} are affected.
                  </p>
                </li>`,
              )}
              ${holds.map(
                ({ id, target, reason, actor, at, until }) => html`<li key=${id}>
                  <span class="lamp" data-tone="held"></span>
                  <p>
                    <strong>${targetText(target)}</strong>${untilText(until)}: ${reason}
                    ${' '}<span class="soft small">${id}, ${actor}, <${Moment} at=${at} /></span>
                  </p>
                  <${ActButton} intent=${releaseHold(cluster, id)} about=${targetText(target)} />
                </li>`,
              )}
            </ul>`
      }
    </${Section}>
  `;
}

const untilText = (until: number | undefined): VNode | string =>
  until === undefined ? '' : html`${' '}until <${Moment} at=${until} />`;

/** The policy, and the audit log with its revisions, which can be put into the editor. */
function Recorded({ cluster }: { readonly cluster: string }): VNode {
  const { answer, error } = useAnswer('GET api/policy', () => ({ cluster }), [cluster]);
  const audit = useAnswer('GET api/audit', () => ({ cluster }), [cluster]);
  const [opened, setOpened] = useState<Opened | undefined>(undefined);
  const { text: current = '', revision, refusal } = answer ?? {};
  const open = answer && refusal === undefined && ((text: string) => setOpened({ text, over: answer }));
  return html`
    <${Section} id="policy" title="Policy"
      note=${revision === 0 ? 'default policy' : `revision ${revision ?? '?'}`}>
      ${error !== undefined && html`<${Failed} error=${error} />`}
      ${refusal !== undefined && html`<p>${refusal}</p>`}
      ${
        opened
          ? html`<${PolicyEditor} key=${opened} ...${opened} policy=${answer ?? opened.over} onClose=${() => setOpened(undefined)} />`
          : answer && html`<pre class="card pad" tabindex="0" aria-label="Policy document">${current}</pre>`
      }
      ${open && !opened && html`<div class="buttons"><button type="button" class="button" onClick=${() => open(current)}>Edit policy</button></div>`}
    </${Section}>
    <${Section} id="audit" title="Audit log">
      ${audit.error !== undefined && html`<${Failed} error=${audit.error} />`}
      ${
        audit.answer?.length === 0
          ? html`<${Empty} title="No audit entries">Policies, stops, holds, and releases appear here, with their actors and reasons.</${Empty}>`
          : html`<${Rows} label="Audit log" wrap columns=${auditColumns(current, open || undefined)} rows=${audit.answer ?? []} keyOf=${auditKey} />`
      }
    </${Section}>
  `;
}

const auditKey = ({ at, kind, actor, message }: AuditEntry): string => `${at} ${kind} ${actor} ${message}`;

const auditColumns = (current: string, restore?: (text: string) => void): readonly Column<AuditEntry>[] => [
  column(
    { key: 'message', head: 'Action', width: 'minmax(10rem, 2fr)' },
    ({ cluster, message, policy: { revision, text, settings } = { revision: 0, settings: [] } }) => html`
      ${message}${cluster === undefined && html` <${Tag} text="all clusters" />`}
      <${Changes} settings=${settings} />
      ${restore && text !== undefined && text !== current && html`<button type="button" class="button" onClick=${() => restore(text)}>Restore revision ${revision}</button>`}
    `,
  ),
  column({ key: 'at', head: 'Time', width: 'minmax(5rem, 0.8fr)' }, ({ at }) => html`<${Moment} at=${at} />`),
  column(
    { key: 'reason', head: 'Reason', width: 'minmax(8rem, 2fr)' },
    ({ reason }) => html`<span title=${reason}>${reason}</span>`,
  ),
  column(
    { key: 'actor', head: 'Actor', width: 'minmax(8rem, 1.4fr)' },
    ({ actor }) => html`<span class="soft" title=${actor}>${actor}</span>`,
  ),
];
