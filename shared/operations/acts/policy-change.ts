import type { Policy } from '#shared/eviction/policy.ts';
import { documentOf } from '#shared/state/policy-document.ts';

/** A setting of a policy that differs. `-`: the setting is absent. */
export interface ChangedSetting {
  readonly setting: string;
  readonly now: string;
  readonly next: string;
}

/** Returns the settings that differ, each with its current and its new value. */
export function changedSettings(now: Policy, then: Policy): readonly ChangedSetting[] {
  const [before, after] = [settingsOf(documentOf(now)), settingsOf(documentOf(then))];
  return [...new Set([...before.keys(), ...after.keys()])]
    .map((setting) => ({ setting, now: before.get(setting) ?? '-', next: after.get(setting) ?? '-' }))
    .filter(({ now: left, next: right }) => left !== right);
}

/** Returns every setting of a document by its path. A list counts as one setting. */
function settingsOf(value: unknown, path = ''): ReadonlyMap<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return new Map([[path, typeof value === 'string' ? value : JSON.stringify(value)]]);
  }
  return new Map(
    Object.entries(value).flatMap(([name, inner]) => [...settingsOf(inner, path ? `${path}.${name}` : name)]),
  );
}
