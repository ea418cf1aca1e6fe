import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from 'js-yaml';
import * as z from 'zod';
import { policyDocument } from '#shared/eviction/policy.ts';
import { policyJsonSchema } from '#shared/state/policy-document.ts';
import { withPresentNames } from '#shared/state/policy-names.ts';
import { MAX_HISTORY_DAYS, MIN_HISTORY_DAYS } from '#shared/state/stored.ts';
import { VERSION } from '#shared/version.ts';

const CHART = join(import.meta.dirname, '../../../deploy/chart');
const read = (file: string): string => readFileSync(join(CHART, file), 'utf8');

/** A part of the schema of the values. */
interface Part {
  readonly description?: string | undefined;
  readonly $ref?: string | undefined;
  readonly type?: unknown;
  readonly additionalProperties?: unknown;
  readonly properties?: Readonly<Record<string, Part>> | undefined;
  readonly items?: Part | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
}
const Part: z.ZodType<Part> = z.lazy(() =>
  z.object({
    description: z.string().optional(),
    $ref: z.string().optional(),
    type: z.unknown().optional(),
    additionalProperties: z.unknown().optional(),
    properties: z.record(z.string(), Part).optional(),
    items: Part.optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
  }),
);
const Schema = Part.and(z.object({ $defs: z.record(z.string(), Part) }));
const schema = Schema.parse(JSON.parse(read('values.schema.json')));

/** What a part refers to, or itself. */
const meant = (part: Part): Part =>
  part.$ref === undefined ? part : (schema.$defs[part.$ref.replace('#/$defs/', '')] ?? part);

/** All parts below one, by their path. */
function partsOf(part: Part, path = ''): readonly (readonly [string, Part])[] {
  const { properties = {}, items } = meant(part);
  const below = Object.entries(properties).flatMap(([name, each]) => partsOf(each, `${path}/${name}`));
  return [[path, part], ...below, ...(items ? partsOf(items, `${path}[]`) : [])];
}
const parts = new Map(partsOf(schema));

test('each value is described', () => {
  const undescribed = [...parts].filter(
    ([path, { description }]) => path !== '' && !path.endsWith('[]') && description === undefined,
  );
  assert.deepEqual(
    undescribed.map(([path]) => path),
    [],
  );
});

test('a value that nothing reads is refused, wherever it stands', () => {
  const open = [...parts].filter(([path, part]) => {
    const { type, additionalProperties } = meant(part);
    // Helm itself adds that one, where a chart is part of another.
    return type === 'object' && path !== '/global' && (additionalProperties ?? true) === true;
  });
  assert.deepEqual(
    open.map(([path]) => path),
    [],
  );
});

test('each value has a default, with a comment, and each default is a value', () => {
  const text = read('values.yaml');
  const found: string[] = [];
  const walk = (value: unknown, path: string) => {
    found.push(path);
    // What is empty by default is filled by who installs it, and the maps of Kubernetes are its own.
    const below = parts.get(path)?.properties;
    if (below && path !== '/resources') {
      for (const [name, each] of Object.entries(z.record(z.string(), z.unknown()).parse(value))) {
        walk(each, `${path}/${name}`);
      }
    }
  };
  walk(load(text), '');
  const values = [...parts.keys()].filter(
    (path) => path !== '/global' && !path.includes('[]') && !/^\/resources\/./.test(path),
  );
  assert.deepEqual(found.toSorted(), values.toSorted());
  const lines = text.split('\n');
  const uncommented = lines.filter(
    (line, index) => /^[a-z]\w*:/i.test(line) && !/^(#|$)/.test(lines[index - 1] ?? ''),
  );
  assert.deepEqual(uncommented, []);
});

test('the chart knows the settings of a policy that the service reads, former names included', () => {
  const template = read('templates/_policy.tpl');
  const listed = (name: string): readonly string[] =>
    (new RegExp(`define "taintward\\.${name}" -}}\\n(.*)\\n`).exec(template)?.[1] ?? '').split(' ');
  const Settings = z.object({ properties: z.record(z.string(), z.unknown()) });
  const { properties } = Settings.parse(policyJsonSchema());
  const formerNames = new Set<string>();
  const values = { rate: 1, drain: 1, only: [], tolerationSeconds: {}, virtualKeys: [], giveUpAfter: '4d' };
  withPresentNames(policyDocument, values, ({ before }) => formerNames.add(before));
  assert.deepEqual(listed('policySettings'), [...Object.keys(properties), ...formerNames]);
  const { items } = z.object({ items: Settings }).parse(properties['exclude']);
  assert.deepEqual(listed('policyEntrySettings'), Object.keys(items.properties));
});

test('history is kept for as long as the service takes it', () => {
  const { minimum, maximum } = parts.get('/historyDays') ?? {};
  assert.deepEqual([minimum, maximum], [MIN_HISTORY_DAYS, MAX_HISTORY_DAYS]);
});

test('the chart has the version of what it installs', () => {
  const { version, appVersion } = z
    .object({ version: z.string(), appVersion: z.string() })
    .parse(load(read('Chart.yaml')));
  assert.deepEqual([version, appVersion], [VERSION, VERSION]);
});
