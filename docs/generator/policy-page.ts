import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { documentOf, policyJsonSchema } from '#shared/state/policy-document.ts';
import { table } from './table.ts';

/** A setting in a JSON Schema. */
interface Setting {
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Setting>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly Setting[];
}

const BEGIN = '<!-- Made from the code by npm run docs. -->\n\n';
const END = '\n\n<!-- From here on written by hand. -->';

/** Returns docs/reference/policy.md with the table of the declared settings; the rest of the page is unchanged. */
export function policyPage(page: string): string {
  const rows = rowsOf(policyJsonSchema(), documentOf(DEFAULT_POLICY));
  const before = page.slice(0, page.indexOf(BEGIN));
  const after = page.slice(page.indexOf(END));
  return `${before}${BEGIN}${table(['setting', 'default', ''], rows)}${after}`;
}

/** Returns a row for each described setting, and for its inner settings. `defaults` are the values of an empty policy. */
function rowsOf(schema: Setting, defaults: unknown, path = ''): readonly (readonly string[])[] {
  const { properties = {} } = [schema, ...(schema.anyOf ?? [])].find((each) => each.properties) ?? {};
  return Object.entries(properties).flatMap(([name, setting]) => {
    const byDefault = fieldOf(defaults, name) ?? setting.default;
    const within = rowsOf(setting, byDefault, `${path}${name}.`);
    if (setting.description === undefined) return within;
    const isUnsaid = within.length > 0 || byDefault === undefined || schema.required?.includes(name);
    return [[`\`${path}${name}\``, isUnsaid ? '' : valueText(byDefault), setting.description], ...within];
  });
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;

const valueText = (value: unknown): string =>
  `\`${
    typeof value === 'object'
      ? Object.entries(value ?? {})
          .map((field) => field.join(': '))
          .join(', ')
      : value
  }\``;
