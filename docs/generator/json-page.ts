import type { Named } from './json-schema.ts';
import { table } from './table.ts';

/** Returns the file of a command's schema, below docs/reference. */
export const schemaFile = (command: string): string =>
  `json/${command.replaceAll('-', ' ').trim().split(/ +/).join('-')}.schema.json`;

/** Returns docs/reference/json.md, with the schema of each command. */
export function jsonPage(outputs: readonly Named[]): string {
  const rows = outputs.map(({ name }) => [
    name.startsWith('--') ? `any command with \`${name}\`` : `\`taintward ${name}\``,
    `[${schemaFile(name).slice('json/'.length)}](${schemaFile(name)})`,
  ]);
  return `# JSON output

<!-- Made from the code by npm run docs. -->

Look up the form of an answer with \`-o json\` or \`-o yaml\`. Each command has a JSON Schema (draft 2020-12), which is made from the types of the code. Tests
compare the answers of commands with the schemas, which have all fields.

- A field that isn't in \`required\` can be missing. It is never \`null\` for that reason.
- Times are in ISO 8601 and UTC, with milliseconds. Fields that end in \`Ms\` are durations in milliseconds.
- \`message\`, \`error\`, \`reason\`, and other sentences are for people. Their wording can change in any release.

A release that removes a field or changes its type says so in the [changelog](../../CHANGELOG.md). Any release can add fields: ignore unknown ones. The
schemas allow only the fields of their own release.

${table(['command', 'schema'], rows)}

The console's page reads the same types, in [console.schema.json](json/console.schema.json), with times in milliseconds since 1970. It isn't for other programs, because
the page and its server are always of one release.
`;
}
