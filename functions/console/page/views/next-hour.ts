import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Timeline, TimelineKind } from '#shared/console/api.ts';
import { now } from '../live.ts';
import { counted, momentText } from '../moments.ts';
import { useAnswer } from '../use-answer.ts';

const KINDS: readonly (readonly [TimelineKind, string])[] = [
  ['evict', 'evicted'],
  ['held', 'held'],
  ['observed', 'observed only'],
];
const MINUTE_MS = 60_000;
/** Minutes between two marks of the axis. */
const MARK_EVERY = 10;

/** The next hour, minute by minute. */
export function NextHour(): VNode {
  const { answer: timeline, error } = useAnswer('GET api/timeline', () => ({}), []);
  const most = Math.max(1, ...(timeline?.minutes ?? []).map(sum));
  return html`
    <figure class="card pad hour">
      <div class="lead">
        <h2 id="next-hour">The next hour</h2>
        <ul class="legend">
          ${KINDS.map(([kind, text]) => html`<li key=${kind}><span class="swatch" data-kind=${kind}></span>${text}</li>`)}
        </ul>
      </div>
      <div class="bars" role="img" aria-label=${timeline ? summary(timeline) : 'The timeline is not known'}>
        ${most > 1 && html`<span class="most">${counted(most, 'pod')} per minute</span>`}
        ${(timeline?.minutes ?? []).map(
          (minute, index) => html`
            <div key=${index} class="minute" title=${minuteText(timeline, index)}>
              ${KINDS.map(
                ([kind]) =>
                  minute[kind] > 0 &&
                  html`<span key=${kind} data-kind=${kind} style=${{ '--share': String(minute[kind] / most) }}></span>`,
              )}
            </div>
          `,
        )}
      </div>
      <div class="marks" aria-hidden="true">
        ${Array.from({ length: 60 / MARK_EVERY }, (_, index) => {
          const at = (timeline?.from ?? now.value) + index * MARK_EVERY * MINUTE_MS;
          return html`<span key=${index}>${index === 0 ? 'now' : momentText(at, now.value).slice(0, 5)}</span>`;
        })}
      </div>
      <figcaption class="soft small">${error ?? (timeline && summary(timeline))}</figcaption>
    </figure>
  `;
}

const sum = (minute: Timeline['minutes'][number]): number =>
  KINDS.reduce((total, [kind]) => total + minute[kind], 0);

function minuteText(timeline: Timeline | undefined, index: number): string | undefined {
  const minute = timeline?.minutes[index];
  if (!timeline || !minute || sum(minute) === 0) return undefined;
  const parts = KINDS.filter(([kind]) => minute[kind] > 0).map(([kind, text]) => `${minute[kind]} ${text}`);
  return `${momentText(timeline.from + index * MINUTE_MS, now.value)}: ${parts.join(', ')}`;
}

function summary({ minutes, later }: Timeline): string {
  const [going = 0, holding = 0, observed = 0] = KINDS.map(([kind]) =>
    minutes.reduce((total, minute) => total + minute[kind], 0),
  );
  const parts = [
    ...(going > 0 ? [`${counted(going, 'pod is evicted', 'pods are evicted')}`] : []),
    ...(holding > 0 ? [`${counted(holding, 'pod is held', 'pods are held')}`] : []),
    ...(observed > 0 ? [`${counted(observed, 'pod')} would be evicted in enforce mode`] : []),
  ];
  const hour =
    parts.length === 0
      ? 'No evictions are due within the next hour'
      : `Within the next hour, ${parts.join(', ')}`;
  return `${[hour, ...(later > 0 ? [`${counted(later, 'pod is', 'pods are')} due later`] : [])].join('; ')}.`;
}
