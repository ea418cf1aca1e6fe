import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { JSON_SCHEMA, load } from 'js-yaml';
import * as z from 'zod';

export const SCHEMAS = join(import.meta.dirname, '../../docs/reference/json');
const fileOf = (name: string): string => join(SCHEMAS, `${name}.schema.json`);

/** Options that change what a command prints. */
const FORMS = ['--by', '--compare', '--stuck'];
const PROGRAMS_FORMATS = ['json', 'yaml'];

const known = new Map<string, z.ZodType>();

/** Returns a published schema, as readers use it who have no code of Taintward. */
export function publishedSchema(name: string): z.ZodType {
  const schema = known.get(name) ?? z.fromJSONSchema(JSON.parse(readFileSync(fileOf(name), 'utf8')));
  known.set(name, schema);
  return schema;
}

/** Returns the name of the schema of what a command line prints. Throws if none is published. */
export function schemaNameOf(args: readonly string[]): string {
  if (args.includes('--dry-run')) return 'dry-run';
  const words = args.slice(args.findIndex((word) => /^[a-z]/.test(word)));
  const form = FORMS.find((option) => args.includes(option))?.slice(1) ?? '';
  return (
    [`${words[0]}-${words[1]}`, `${words[0]}`]
      .map((name) => `${name}${form}`)
      .find((name) => existsSync(fileOf(name))) ?? assert.fail(`no schema of ${args.join(' ')} is published`)
  );
}

/** Throws if a command printed an answer for programs that its published schema does not allow. */
export function assertPublished(args: readonly string[], printed: string): void {
  const at = args.findIndex((word) => word === '-o' || word === '--output');
  if (at < 0 || !PROGRAMS_FORMATS.includes(args[at + 1] ?? '') || printed === '') return;
  assertMatches(schemaNameOf(args), load(printed, { schema: JSON_SCHEMA }));
}

export function assertMatches(name: string, answer: unknown): void {
  const { error } = publishedSchema(name).safeParse(answer);
  assert.equal(error && z.prettifyError(error), undefined, `${name}.schema.json forbids this answer`);
}
