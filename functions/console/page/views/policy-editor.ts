import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Api, PolicyDraft, PolicyShown } from '#shared/console/api.ts';
import { ActButton, applyPolicy } from '../act-button.ts';
import { Changes } from '../acts.ts';
import { Choice } from '../fields.ts';
import { post, sentenceOf } from '../server.ts';

/** A text in the editor, and the policy that was in force when it was put there. */
export interface Opened {
  readonly text: string;
  readonly over: PolicyShown;
}

interface EditorProps extends Opened {
  /** The policy in force. */
  readonly policy: PolicyShown;
  readonly onClose: () => void;
}

const TYPED_MS = 300;

/** A policy document as text and as a form. The server judges each change of either. */
export function PolicyEditor({ policy, text: opened, over, onClose }: EditorProps): VNode {
  const { cluster, revision, schema } = policy;
  const [text, setText] = useState(opened);
  const [draft, setDraft] = useState<PolicyDraft | undefined>(undefined);
  const [error, setError] = useState('');
  const area = useRef<HTMLTextAreaElement>(null);
  const latest = useRef(text);
  const answered = useRef(Promise.resolve());
  const write = (written: string) => {
    latest.current = written;
    setText(written);
  };
  const shown = useRef<Values>({});
  /** An edit waits for the one before, on which it is based. */
  const ask = (more: () => Partial<Api['POST api/policy']['asks']> = () => ({})) => {
    answered.current = answered.current.then(() => {
      const asks = { cluster, text: latest.current, ...more() };
      return post('POST api/policy', asks).then(
        (answer) => {
          if (latest.current !== asks.text) return;
          write(answer.text);
          shown.current = valuesIn(answer.document);
          setDraft(answer);
          setError('');
        },
        (thrown: unknown) => setError(sentenceOf(thrown)),
      );
    });
  };
  useEffect(() => area.current?.focus(), []);
  useEffect(() => {
    const waits = draft?.text === text ? undefined : setTimeout(ask, TYPED_MS);
    return () => clearTimeout(waits);
  }, [text]);
  // It was applied, here or elsewhere.
  useEffect(() => {
    if (revision !== over.revision && policy.text === text) onClose();
  }, [revision]);
  const { document, faults = [], effects = [], settings = [] } = draft ?? {};
  const isValid = draft?.text === text && faults.length === 0;
  const values = document as Values | undefined;
  return html`
    <div class="editor">
      <div class="section">
        <label class="field">
          <span>Policy document</span>
          <textarea class="mono" rows="16" spellcheck=${false} ref=${area} value=${text} onInput=${() => write(area.current?.value ?? '')}></textarea>
        </label>
        ${error !== '' && html`<p class="failed" role="alert">${error}</p>`}
        <div class="says" role="status">
          ${revision !== over.revision && html`<p>Revision ${revision} was applied meanwhile. Changes are compared with it.</p>`}
          <ul>
            ${faults.map((fault) => html`<li key=${fault} class="failed">${fault}</li>`)}
            ${effects.map((effect) => html`<li key=${effect}>${effect}</li>`)}
          </ul>
          <${Changes} settings=${settings} />
        </div>
        <div class="buttons">
          ${isValid && text !== policy.text && html`<${ActButton} intent=${applyPolicy(cluster, text)} text="Apply policy" kind="main" />`}
          ${isValid && (values?.['exclude'] ?? values?.['include']) !== undefined && html`<button type="button" class="button" onClick=${() => ask(() => ({ count: true }))}>Count selected pods</button>`}
          <button type="button" class="button" onClick=${onClose}>Cancel</button>
        </div>
      </div>
      <fieldset class="form" disabled=${values === undefined}>
        <legend class="unseen">Settings</legend>
        ${Object.entries((schema as Schema).properties ?? {}).map(
          ([setting, inner]) =>
            html`<${Field} key=${setting} name=${setting} schema=${inner} value=${values?.[setting]} onEdit=${(change: Change) => ask(() => ({ edit: { setting, value: JSON.stringify(change(shown.current[setting])) } }))} />`,
        )}
      </fieldset>
    </div>
  `;
}

/** Makes a new value of a setting of the latest one; `undefined` removes the setting. */
type Change = (before: unknown) => unknown;

type Values = Readonly<Record<string, unknown>>;

/** The parts of a JSON Schema that policy documents use. */
interface Schema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly description?: string;
  readonly default?: unknown;
}

interface FieldProps {
  /** As in messages: `exclude[0].namespaces`. */
  readonly name: string;
  readonly schema: Schema;
  /** Absent: the document doesn't set it. */
  readonly value: unknown;
  readonly onEdit: (change: Change) => void;
}

/** The fields of a setting with all its parts, by its schema. */
function Field({ name, schema, value, onEdit }: FieldProps): VNode {
  const { properties } = [schema, ...(schema.anyOf ?? [])].find((kind) => kind.properties) ?? {};
  if (!properties && !schema.items?.properties)
    return html`<${Scalar} ...${{ name, schema, value, onEdit }} />`;
  const changePart = (key: string, change: Change) =>
    onEdit((before) => {
      const changed = { ...valuesIn(before), [key]: change(valuesIn(before)[key]) };
      const parts = Object.entries(changed).filter(([, part]) => part !== undefined);
      return parts.length > 0 ? Object.fromEntries(parts) : undefined;
    });
  const changeItems = (change: (before: readonly unknown[]) => readonly unknown[]) =>
    onEdit((before) => {
      const changed = change(itemsIn(before));
      return changed.length > 0 ? changed : undefined;
    });
  return html`<fieldset class="group">
    <legend>${name}</legend>
    ${schema.description !== undefined && html`<p class="soft small">${schema.description}</p>`}
    ${schema.anyOf && html`<${Choice} label=${`${name} is`} value=${value === 'off' ? 'off' : ''} options=${ON_OFF} onChoice=${(choice: string) => onEdit(() => choice || undefined)} />`}
    ${
      value !== 'off' &&
      Object.entries(properties ?? {}).map(
        ([key, inner]) =>
          html`<${Field} key=${key} name=${`${name}.${key}`} schema=${inner} value=${valuesIn(value)[key]} onEdit=${(change: Change) => changePart(key, change)} />`,
      )
    }
    ${itemsIn(value).map(
      (item, index) => html`
        <${Field} key=${index} name=${`${name}[${index}]`} schema=${schema.items} value=${item} onEdit=${(change: Change) => changeItems((items) => items.toSpliced(index, 1, change(items[index]) ?? {}))} />
        <button type="button" class="button" onClick=${() => changeItems((items) => items.toSpliced(index, 1))}>Remove ${name}[${index}]</button>
      `,
    )}
    ${schema.items && html`<button type="button" class="button" onClick=${() => changeItems((items) => [...items, {}])}>Add to ${name}</button>`}
  </fieldset>`;
}

const valuesIn = (value: unknown): Values =>
  typeof value === 'object' && value !== null ? (value as Values) : {};

const itemsIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const ON_OFF = ['', 'off'].map((choice) => [choice, choice || 'on']);

function textOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value ?? '');
  const parts = Object.entries(value).map(([key, part]) => (Array.isArray(value) ? part : `${key}=${part}`));
  return parts.join(', ');
}

/** Returns the value that a text means. The server says whether it is valid. */
function meantBy({ type = '', items, additionalProperties, anyOf = [] }: Schema, text: string): unknown {
  const parts = text.split(',').flatMap((part) => part.trim() || []);
  if (parts.length === 0) return undefined;
  if (items) return parts;
  if (additionalProperties)
    return Object.fromEntries(
      parts.map((part) => {
        const [key = '', ...rest] = part.split('=');
        return [key, meantBy(additionalProperties, rest.join('=')) ?? ''];
      }),
    );
  const isNumber = [type, ...anyOf.map((kind) => kind.type)].some((kind) =>
    /^(number|integer)$/.test(kind ?? ''),
  );
  return isNumber && Number.isFinite(Number(text)) ? Number(text) : text.trim();
}

/** A setting without parts: a choice, or a text that counts once the user leaves it. */
function Scalar({ name, schema, value, onEdit }: FieldProps): VNode {
  const current = textOf(value);
  const [text, setText] = useState(current);
  useEffect(() => setText(current), [current]);
  const isBoolean = schema.type === 'boolean';
  const choices = isBoolean ? ['true', 'false'] : schema.enum;
  const lists = schema.items
    ? 'with commas between'
    : schema.additionalProperties && 'key=value, with commas between';
  const absent = schema.default === undefined ? (lists ?? 'not set') : `default: ${schema.default}`;
  const isFaithful = JSON.stringify(meantBy(schema, current)) === JSON.stringify(value);
  return html`<div class="field">
    ${
      choices
        ? html`<${Choice} label=${name} help=${`help-${name}`} value=${current} options=${['', ...choices].map((choice) => [choice, choice || absent])} onChoice=${(choice: string) => onEdit(() => (isBoolean && choice ? choice === 'true' : choice || undefined))} />`
        : html`<label class="field">
            <span>${name}</span>
            <input
              type="text" autocomplete="off" spellcheck=${false} aria-describedby=${`help-${name}`} placeholder=${absent}
              disabled=${!isFaithful}
              value=${text}
              onInput=${(event: Event) => setText((event.currentTarget as HTMLInputElement).value)}
              onChange=${() => onEdit(() => meantBy(schema, text))}
            />
          </label>`
    }
    <span class="soft small" id=${`help-${name}`}>${isFaithful || choices ? schema.description : 'Edit it in the document.'}</span>
  </div>`;
}
