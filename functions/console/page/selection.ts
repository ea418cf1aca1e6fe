import { signal } from '@preact/signals';
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { ActButton, type HeldTarget, holdPods, releaseHold } from './act-button.ts';
import { counted } from './moments.ts';

/** A pod, or a group of pods, that one hold can hold. */
export interface Selectable {
  readonly key: string;
  readonly name: string;
  readonly cluster: string;
  readonly target?: HeldTarget | undefined;
  /** IDs of the holds that hold it. */
  readonly holds: readonly string[];
}

/** Keys of the selected rows. */
export const selected = signal<ReadonlySet<string>>(new Set());

export function Checkbox({ row: { key, name } }: { readonly row: Selectable }): VNode {
  const toggle = () => {
    selected.value = selected.value.symmetricDifference(new Set([key]));
  };
  return html`<input type="checkbox" aria-label=${`Select ${name}`} checked=${selected.value.has(key)} onChange=${toggle} />`;
}

/** Buttons that hold rows, and release what holds others, with one act for each cluster. */
export const RowActs = ({
  rows,
  where,
}: {
  readonly rows: readonly Selectable[];
  readonly where?: true;
}): VNode =>
  html`${[...Map.groupBy(rows, ({ cluster }) => cluster)].map(([cluster, its]) => {
    const [target, ...targets] = its.flatMap((row) => (row.holds.length > 0 ? [] : (row.target ?? [])));
    const [id, ...ids] = new Set(its.flatMap(({ holds }) => holds));
    const about = where ? ` in ${cluster}` : '';
    const kind = where ? '' : 'plain';
    return html`
      ${target && html`<${ActButton} kind=${kind} intent=${holdPods(cluster, target, targets)} text=${`Hold${about}`} about=${its[0]?.name} />`}
      ${id !== undefined && html`<${ActButton} kind=${kind} intent=${releaseHold(cluster, id, ids)} text=${`Release${about}`} about=${its[0]?.name} />`}
    `;
  })}`;

/** The selected ones of these rows, and what can be done with them. */
export function Selection({ rows }: { readonly rows: readonly Selectable[] }): VNode | undefined {
  const chosen = rows.filter(({ key }) => selected.value.has(key));
  if (chosen.length === 0) return undefined;
  return html`
    <div class="card pad selection">
      <p role="status">${counted(chosen.length, 'row')} selected</p>
      <div class="buttons"><${RowActs} rows=${chosen} where /></div>
    </div>
  `;
}
