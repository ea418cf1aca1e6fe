import { signal } from '@preact/signals';
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Api, Preview } from '#shared/console/api.ts';
import type { ChangedSetting } from '#shared/state/policy-change.ts';
import { durationText } from '#shared/time/duration.ts';
import { commandOf, type Draft } from './act-command.ts';
import { Command } from './command.ts';
import { isConfirmed } from './confirmed.ts';
import { Choice } from './fields.ts';
import { counted } from './moments.ts';
import { post, ServerError, sentenceOf } from './server.ts';

type Act = Api['POST api/preview']['asks'];

export interface Intent {
  readonly title: string;
  /** Label of the button. */
  readonly verb: string;
  readonly draft: Draft;
}

/** The current question and its number. The same question, asked again, has a new number. */
const intent = signal<{ readonly intended: Intent; readonly question: number } | undefined>(undefined);
let questions = 0;
/** The last act's message, shown for a while. */
export const shownMessage = signal('');

/** Asks the user to confirm an act and to give a reason. */
export function confirm(intended: Intent): void {
  questions += 1;
  intent.value = { intended, question: questions };
}

const SHOWN_FOR_MS = 6_000;
let saying: ReturnType<typeof setTimeout> | undefined;

/** Shows that something was done. */
export function showMessage(text: string): void {
  shownMessage.value = text;
  clearTimeout(saying);
  saying = setTimeout(() => {
    shownMessage.value = '';
  }, SHOWN_FOR_MS);
}

const MINUTE_MS = 60_000;
const DURATIONS = [15, 60, 4 * 60, 24 * 60, 7 * 24 * 60]
  .map((minutes) => minutes * MINUTE_MS)
  .map((ms) => [String(ms), `for ${durationText(ms)}`]);

/** Shows the effect of an act, asks for the reason, and does the act. */
export function Confirmation(): VNode | undefined {
  const { intended, question = 0 } = intent.value ?? {};
  return intended && html`<${Form} key=${question} intent=${intended} onClose=${() => closed(question)} />`;
}

/** A dialog's close event arrives late: the next question may already be open, and stays open. */
function closed(question: number): void {
  if (intent.value?.question === question) intent.value = undefined;
}

const actOf = ({ draft }: Intent, reason: string, durationMs: number): Act =>
  ({ ...draft, reason, ...(durationMs > 0 ? { durationMs } : {}) }) as Act;

/** The server previews an act only with a reason. The reason doesn't affect the preview. */
export const previewOf = (intended: Intent, durationMs = 0): Promise<Preview> =>
  post('POST api/preview', actOf(intended, '…', durationMs));

/** The settings of a policy that differ. */
export const Changes = ({ settings }: { readonly settings: readonly ChangedSetting[] }): VNode =>
  html`<ul class="changes">${settings.map(({ setting, now, next }) => html`<li key=${setting}><code>${setting}: ${now} → ${next}</code></li>`)}</ul>`;

interface FormProps {
  readonly intent: Intent;
  readonly onClose: () => void;
}

function Form({ intent: intended, onClose }: FormProps): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState('');
  const [durationMs, setDurationMs] = useState(0);
  const [shown, setShown] = useState<Preview | undefined>(undefined);
  const [error, setError] = useState('');
  const [busy, setBusy] = useState(false);
  // An emergency doesn't wait for a reason.
  const optional = intended.draft.kind === 'stop';
  const lasts = optional || intended.draft.kind === 'hold';
  const command = commandOf(intended.draft, reason.trim(), durationMs);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  useEffect(() => {
    let stale = false;
    previewOf(intended, durationMs).then(
      (preview) => {
        if (!stale) setShown(preview);
      },
      (thrown: unknown) => {
        if (!stale) setError(sentenceOf(thrown));
      },
    );
    return () => {
      stale = true;
    };
  }, [durationMs]);

  async function submit(): Promise<void> {
    setBusy(true);
    setError('');
    try {
      const act = actOf(intended, reason.trim(), durationMs);
      const preview = await post('POST api/preview', act);
      // The operator confirmed a number of evictions, or objects of a version. If these differ, show the preview again.
      if (!isConfirmed(act.kind, shown, preview)) {
        setShown(preview);
        setError('The preview changed. Review it and confirm again.');
        return;
      }
      const done = await post('POST api/acts', { act, confirm: preview.confirm });
      dialog.current?.close();
      showMessage(done.message);
    } catch (thrown) {
      const changed = thrown instanceof ServerError && thrown.status === 409;
      if (changed) setShown(await previewOf(intended, durationMs));
      setError(sentenceOf(thrown));
    } finally {
      setBusy(false);
    }
  }

  return html`
    <dialog
      ref=${dialog}
      aria-labelledby="confirm-title"
      onClose=${onClose}
    >
      <form
        onSubmit=${(event: Event) => {
          event.preventDefault();
          if (!busy) void submit();
        }}
      >
        <h2 id="confirm-title">${intended.title}</h2>
        <div class="says">
          ${
            shown
              ? html`<p class="soft">Once confirmed:</p><ul>${[shown.change, ...shown.effects].map((each) => html`<li key=${each}>${each}</li>`)}</ul>`
              : html`<p class="soft">${error === '' ? 'Loading the preview …' : ''}</p>`
          }
          ${shown?.settings && html`<${Changes} settings=${shown.settings} />`}
          ${
            shown !== undefined &&
            shown.pods.evictedNow > 0 &&
            html`<p class="tag" data-tone="goes">${counted(shown.pods.evictedNow, 'pod', 'pods')} will be evicted</p>`
          }
        </div>
        <label class="field">
          <span>Reason (${optional ? 'optional, ' : ''}recorded in the audit log)</span>
          <textarea
            required=${!optional}
            maxlength="500"
            rows="2"
            autofocus
            value=${reason}
            onInput=${(event: Event) => {
              if (event.currentTarget instanceof HTMLTextAreaElement) setReason(event.currentTarget.value);
            }}
          ></textarea>
        </label>
        ${
          lasts &&
          html`<${Choice}
            label="Duration"
            value=${String(durationMs)}
            options=${[['0', `until ${optional ? 'resumed' : 'released'}`], ...DURATIONS]}
            onChoice=${(ms: string) => setDurationMs(Number(ms))}
          />`
        }
        ${error !== '' && html`<p class="failed" role="alert">${error}</p>`}
        <div class="buttons">
          <button type="button" class="button" onClick=${() => dialog.current?.close()}>Cancel</button>
          <button
            type="submit"
            class=${`button ${(shown?.pods.evictedNow ?? 0) > 0 ? 'goes' : 'main'}`}
            disabled=${busy || shown === undefined || (!optional && reason.trim() === '')}
          >
            ${intended.verb}
          </button>
        </div>
        ${command !== undefined && html`<div class="soft small">By command, also without the console${intended.draft.kind === 'apply-policy' && ', with the document as policy.yaml'}:<${Command} text=${command} /></div>`}
      </form>
    </dialog>
  `;
}
