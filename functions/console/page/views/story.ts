import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { PodAnswer } from '#shared/explain/pod.ts';
import { governingFacts, schedulingTexts } from '#shared/operations/ask/words.ts';
import { whyText } from '#shared/operations/look/history-text.ts';
import type { HistoryEntry } from '#shared/state/history.ts';
import { capitalized } from '#shared/text/capitalized.ts';
import { momentText } from '../moments.ts';
import { Empty, Moment, PodLink, Section, Tag } from '../parts.ts';
import { EVENT, sentence } from '../words.ts';

interface PastProps {
  readonly entries: readonly HistoryEntry[];
  /** Shows the pod of each entry. */
  readonly named?: boolean;
}

/** Past events, newest first. */
export const Past = ({ entries, named }: PastProps): VNode => html`
  <${Section} id="past" title="History">
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
                    <p class="soft">${localText(whyText({ of: 'pod', entry }), entry.at)}</p>
                  </div>
                </li>
              `,
            )}
          </ol>`
    }
  </${Section}>
`;

/** Times as on this page, without their distances, such as `(in 5 s)`, which are outdated. */
export const localText = (sentence: string, now: number): string =>
  sentence.replaceAll(/(\d{4}-\d\d-\d\dT[\d:.]+Z)(?: \((?:in [^)]+|[^)]+ ago|now)\))?/g, (_, iso: string) =>
    momentText(Date.parse(iso), now),
  );

type Governed = Pick<PodAnswer, 'at' | 'policy' | 'gates' | 'budgets' | 'builtIn' | 'unknown'>;

interface AroundProps {
  readonly answer: Governed | PodAnswer;
  readonly about: 'pod' | 'node';
}

/** All other details of a pod or a node. */
export function Around({ answer, about }: AroundProps): VNode | undefined {
  const after = 'outcome' in answer ? schedulingTexts(answer).map(sentence) : [];
  const facts = [
    ...governingFacts(answer, about),
    ...(after.length > 0 ? [['after the eviction', after.join(' ')] as const] : []),
    ...answer.unknown.map(({ what, reason }) => [`unknown: ${what}`, reason] as const),
  ];
  if (facts.length === 0) return undefined;
  return html`
    <${Section} id="around" title="Details">
      <dl class="facts card pad">
        ${facts.map(
          ([name, text], index) => html`<dt key=${index}>${capitalized(name)}</dt>
            <dd>${localText(text, answer.at)}</dd>`,
        )}
      </dl>
    </${Section}>
  `;
}
