import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { clusters } from './live.ts';

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChoice: (value: string) => void;
  /** ID of the element that describes it. */
  readonly help?: string;
}

/** A list with one selected option. */
export const Choice = ({ label, value, options, onChoice, help }: ChoiceProps): VNode => html`
  <label class="field">
    <span>${label}</span>
    <select
      value=${value}
      aria-describedby=${help}
      onChange=${(event: Event) => {
        if (event.currentTarget instanceof HTMLSelectElement) onChoice(event.currentTarget.value);
      }}
    >
      ${options.map(([each, text]) => html`<option key=${each} value=${each}>${text}</option>`)}
    </select>
  </label>
`;

/** The choice of a cluster. Not shown if there is only one. */
export const ClusterChoice = ({
  value,
  onChoice,
  all = true,
}: Pick<ChoiceProps, 'value' | 'onChoice'> & { readonly all?: boolean }): VNode | undefined => {
  const names = clusters.value.map(({ cluster }) => cluster);
  if (names.length < 2) return undefined;
  const options = [...(all ? [''] : []), ...names].map((name) => [name, name || 'all clusters'] as const);
  return html`<${Choice} label="Cluster" ...${{ value, onChoice, options }} />`;
};

interface SearchProps {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  /** The text is usually long. */
  readonly wide?: true;
  readonly onText: (text: string) => void;
}

/** A text field that filters while the user types. */
export const TextField = ({ label, value, placeholder, wide, onText }: SearchProps): VNode => html`
  <label class=${wide ? 'field wide' : 'field'}>
    <span>${label}</span>
    <input
      type="text"
      autocomplete="off"
      spellcheck=${false}
      value=${value}
      placeholder=${placeholder}
      onInput=${(event: Event) => {
        if (event.currentTarget instanceof HTMLInputElement) onText(event.currentTarget.value);
      }}
    />
  </label>
`;
