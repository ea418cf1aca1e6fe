import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { wordsOf } from '#shared/explain/gate-text.ts';
import type { PodAnswer } from '#shared/explain/pod.ts';
import type { HistoryEntry } from '#shared/state/history.ts';
import { momentText } from '../moments.ts';
import { Ago, Empty, Moment, PodLink, Tag } from '../parts.ts';
import { causeText, EVENT } from '../words.ts';

interface PastProps {
  readonly entries: readonly HistoryEntry[];
  /** Shows the pod of each entry. */
  readonly named?: boolean;
}

/** Past events, newest first. */
export const Past = ({ entries, named }: PastProps): VNode => html`
  <section class="section" aria-labelledby="past">
    <h2 id="past">History</h2>
    ${
      entries.length === 0
        ? html`<${Empty} title="No history">No eviction was scheduled, carried out, or canceled here recently.</${Empty}>`
        : html`<ol class="past">
            ${entries.map(
              (entry) => html`
                <li key=${`${entry.at} ${entry.uid} ${entry.event} ${entry.dueAt}`} data-tone=${EVENT[entry.event].tone}>
                  <span class="soft"><${Moment} at=${entry.at} /></span>
                  <div>
                    <${Tag} ...${EVENT[entry.event]} />
                    ${named && html` <${PodLink} ...${{ cluster: entry.cluster, namespace: entry.namespace, pod: entry.pod }} />`}
                    <p class="soft">${causeText(entry, entry.at)}</p>
                  </div>
                </li>
              `,
            )}
          </ol>`
    }
  </section>
`;

/** Times as on this page, without their distances, such as `(in 5 s)`, which are outdated. */
export const localText = (sentence: string, now: number): string =>
  sentence.replaceAll(/(\d{4}-\d\d-\d\dT[\d:.]+Z)(?: \((?:in [^)]+|[^)]+ ago|now)\))?/g, (_, iso: string) =>
    momentText(Date.parse(iso), now),
  );

interface AroundProps extends Pick<PodAnswer, 'policy' | 'builtIn' | 'gates' | 'unknown'> {
  readonly budgets?: PodAnswer['budgets'];
  readonly further?: readonly (readonly [string, string])[];
}

/** All other details of a pod or a node. */
export function Around({
  policy,
  builtIn,
  budgets,
  gates,
  unknown,
  further = [],
}: AroundProps): VNode | undefined {
  const facts: readonly (readonly [string, VNode | string])[] = [
    ...gates.map(({ by: gate, act, trip }) => {
      const reason = act
        ? html`(${act.reason}) <span class="soft small">${act.actor}, <${Ago} at=${act.at} /> ago</span>`
        : trip && `(${trip})`;
      return ['Held by', html`${wordsOf(gate).name(gate)} ${reason}`] as const;
    }),
    ...(policy ? [['Policy', policyText(policy)] as const] : []),
    ...(builtIn
      ? [
          [
            'Built-in controller',
            html`${builtIn.state}${builtIn.evictsAt !== undefined && builtIn.state !== 'off' && html`, evicts at <${Moment} at=${builtIn.evictsAt} />`} <span class="soft small">${builtIn.evidence}</span>`,
          ] as const,
        ]
      : []),
    ...further,
    ...(budgets && budgets.length > 0
      ? [
          [
            'Disruption budgets',
            budgets.map(({ name, allowed }) => `${name} (${allowed} disruptions allowed)`).join(', '),
          ] as const,
        ]
      : []),
    ...unknown.map(({ what, reason }) => [`Unknown: ${what}`, reason] as const),
  ];
  if (facts.length === 0) return undefined;
  return html`
    <section class="section" aria-labelledby="around">
      <h2 id="around">Details</h2>
      <dl class="facts card pad">
        ${facts.map(
          ([name, text], index) => html`<dt key=${index}>${name}</dt>
            <dd>${text}</dd>`,
        )}
      </dl>
    </section>
  `;
}

function policyText({ mode, method, evictionRate }: NonNullable<PodAnswer['policy']>): string {
  const how = method.kind === 'evict' ? 'the Eviction API' : 'delete';
  return `${mode}, by ${how}${evictionRate === undefined ? '' : `, ${evictionRate} pods per second`}`;
}
