import type { Policy } from '#shared/eviction/policy.ts';
import { documentOf } from './policy-document.ts';

/** A setting of a policy that differs. `-`: the setting is absent. */
export interface ChangedSetting {
  readonly setting: string;
  readonly now: string;
  readonly next: string;
}

/** A list counts as one setting; so does a mapping that appears, disappears, or is turned off. */
export const changedSettings = (now: Policy, then: Policy): readonly ChangedSetting[] =>
  changesIn(documentOf(now), documentOf(then), '');

function changesIn(now: Document, then: Document, path: string): readonly ChangedSetting[] {
  return Object.keys({ ...now, ...then }).flatMap((name) => {
    const [left, right] = [now[name], then[name]];
    const setting = `${path}${name}`;
    if (isMapping(left) && isMapping(right)) return changesIn(left, right, `${setting}.`);
    const change = { setting, now: textOf(left), next: textOf(right) };
    return change.now === change.next ? [] : [change];
  });
}

type Document = Readonly<Record<string, unknown>>;

const isMapping = (value: unknown): value is Document =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function textOf(value: unknown): string {
  if (value === undefined) return '-';
  if (typeof value === 'string') return value;
  if (!isMapping(value)) return JSON.stringify(value);
  return Object.entries(value)
    .map(([name, inner]) => `${name}: ${textOf(inner)}`)
    .join(', ');
}
