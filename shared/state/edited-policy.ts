import { isDeepStrictEqual } from 'node:util';
import { dump } from 'js-yaml';
import { loadYaml, orFaults } from './policy-document.ts';

/**
 * Returns a policy document with another value of a setting, in YAML; `undefined`: without it. If possible, other settings keep
 * their text, with comments. Throws `PolicyError` if one is not YAML.
 */
export function editedPolicy(written: string, setting: string, value: string | undefined): string {
  const { [setting]: _, ...others } = { ...(loadYaml(written) as Readonly<Record<string, unknown>>) };
  const edit = value === undefined ? {} : { [setting]: loadYaml(value) };
  const lines = written.split('\n');
  const found = lines.findIndex((line) => line.startsWith(`${setting}:`));
  const from = found < 0 ? lines.findLastIndex((line) => line !== '') + 1 : found;
  const next = lines.findIndex((line, at) => at > from && /^[^\s#-]/.test(line));
  const within = lines.slice(from + 1, next < 0 ? undefined : next);
  const end = found < 0 ? from : from + 2 + within.findLastIndex((line) => /^(\s+\S|-)/.test(line));
  const block = value === undefined ? [] : dump(edit).split('\n').slice(0, -1);
  const text = [...lines.slice(0, from), ...block, ...lines.slice(end)].join('\n');
  const document = { ...others, ...edit };
  return isDeepStrictEqual(orFaults(() => loadYaml(text)).value, document) ? text : dump(document);
}
