import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { scopeText } from '#shared/explain/gate-text.ts';
import { ActButton, releaseGuard } from '../act-button.ts';
import { previewOf } from '../acts.ts';
import { clusters, now } from '../live.ts';
import { counted } from '../moments.ts';
import { Moment } from '../parts.ts';
import { href } from '../route.ts';
import { sentenceOf } from '../server.ts';

interface Props {
  readonly cluster: string;
  readonly scope: string;
}

/** What a trip of the guard holds, and what can be done about it, the safest first. */
export function GuardCard({ cluster, scope }: Props): VNode {
  const [rehearsal, setRehearsal] = useState<{ readonly at: number; readonly lines: readonly string[] }>();
  const trips = clusters.value.find((each) => each.cluster === cluster)?.trips ?? [];
  const trip = trips.find((each) => scopeText(each) === scope);
  const intent = releaseGuard(cluster, scope);
  const rehearse = async () => {
    const lines = await previewOf(intent).then(
      ({ change, effects }) => [change, ...effects],
      (error) => [sentenceOf(error)],
    );
    setRehearsal({ at: now.value, lines });
  };
  return html`
    <div class="guard">
      ${
        trip &&
        html`<dl class="facts">
          <dt>Holds</dt>
          <dd>${counted(trip.pods, 'pod')} on ${counted(trip.onNodes, 'node')} ${trip.taints.map((taint) => html`<span key=${taint} class="taint">${taint}</span> `)}</dd>
          <dt>Since</dt>
          <dd><${Moment} at=${trip.trippedAt} /></dd>
        </dl>`
      }
      <div class="buttons">
        <a class="button" href=${href(['nodes'], { cluster })}>Show nodes</a>
        <a class="button" href=${href(['pending'], { cluster, by: 'workload' })}>Hold a workload</a>
        <button type="button" class="button" onClick=${rehearse}>What if I release?<span class="unseen"> ${scope}</span></button>
        <${ActButton} intent=${intent} kind="edged" about=${`of ${cluster} for ${scope}`} />
      </div>
      ${
        rehearsal &&
        html`<div class="says" role="status">
          <p class="soft">If released at <${Moment} at=${rehearsal.at} />:</p>
          <ul>${rehearsal.lines.map((line) => html`<li key=${line}>${line}</li>`)}</ul>
        </div>`
      }
    </div>
  `;
}
