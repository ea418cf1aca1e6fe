import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from 'js-yaml';
import * as z from 'zod';
import { agentClusterSchema } from '#shared/aws/agent-names.ts';
import { policyJsonSchema } from '#shared/state/policy-document.ts';
import { agentIdSchema } from '#shared/state/registry.ts';
import { MAX_HISTORY_DAYS, MIN_HISTORY_DAYS } from '#shared/state/stored.ts';
import { VERSION } from '#shared/version.ts';

const CHART = join(import.meta.dirname, '../../../../deploy/chart');
const read = (file: string): string => readFileSync(join(CHART, file), 'utf8');
const Fields = z.record(z.string(), z.unknown());

/** A part of the schema of the values. */
interface Part {
  readonly description?: string | undefined;
  readonly $ref?: string | undefined;
  readonly type?: unknown;
  readonly additionalProperties?: unknown;
  readonly properties?: Readonly<Record<string, Part>> | undefined;
  readonly items?: Part | undefined;
  readonly pattern?: string | undefined;
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
    pattern: z.string().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
  }),
);
const Schema = Part.and(z.object({ $defs: z.record(z.string(), Part) }));
const schema = Schema.parse(JSON.parse(read('values.schema.json')));

/** Returns the definition that a part refers to, or the part itself. */
const meant = (part: Part): Part =>
  part.$ref === undefined ? part : (schema.$defs[part.$ref.replace('#/$defs/', '')] ?? part);

/** Returns all parts below a part, with their paths. */
function partsOf(part: Part, path = ''): readonly (readonly [string, Part])[] {
  const { properties = {}, items } = meant(part);
  const below = Object.entries(properties).flatMap(([name, each]) => partsOf(each, `${path}/${name}`));
  return [[path, part], ...below, ...(items ? partsOf(items, `${path}[]`) : [])];
}
const parts = new Map(partsOf(schema));

test('describes every value', () => {
  const undescribed = [...parts].filter(
    ([path, { description }]) => path !== '' && !path.endsWith('[]') && description === undefined,
  );
  assert.deepEqual(
    undescribed.map(([path]) => path),
    [],
  );
});

test('rejects unknown values at every level', () => {
  const open = [...parts].filter(([path, part]) => {
    const { type, additionalProperties } = meant(part);
    // `/global` is open because Helm itself adds it when the chart is a subchart.
    return type === 'object' && path !== '/global' && (additionalProperties ?? true) === true;
  });
  assert.deepEqual(
    open.map(([path]) => path),
    [],
  );
});

test('gives each value a commented default and defines no default without a value', () => {
  const text = read('values.yaml');
  const found: string[] = [];
  const walk = (value: unknown, path: string) => {
    found.push(path);
    // Values that are empty by default are filled by the user, and maps such as `resources` belong to Kubernetes.
    const below = parts.get(path)?.properties;
    if (below && path !== '/resources') {
      for (const [name, inner] of Object.entries(Fields.parse(value))) {
        walk(inner, `${path}/${name}`);
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

test('has the defaults of the manifests, and leaves off what a user decides', () => {
  const at = (document: unknown, ...path: readonly (string | number)[]): unknown =>
    path.reduce<unknown>((part, name) => Fields.parse({ ...Object(part) })[name], document);
  const found = (text: string, pattern: RegExp): string => pattern.exec(text)?.[1] ?? '';
  const deployment = read('../in-cluster/deployment.yaml');
  const container = at(load(deployment), 'spec', 'template', 'spec', 'containers', 0);
  const network = at(load(read('../in-cluster/network-policy.yaml')), 'spec');
  const ports = z.array(z.object({ port: z.int() })).parse(at(network, 'egress', 0, 'ports'));
  const evicting = found(read('../in-cluster/admission-policy-nodes.yaml'), /t\.key in (.*)\)$/m);
  const decided: Readonly<Record<string, unknown>> = {
    '/mode': at(container, 'name'),
    '/image/repository': found(deployment, /image: (.*):/),
    '/replicas': Number(found(deployment, /replicas: (.*)/)),
    '/resources': at(container, 'resources'),
    '/priorityClassName': found(deployment, /priorityClassName: "(.*)"/),
    '/networkPolicy/enabled': /network-policy/.test(read('../in-cluster/kustomization.yaml')),
    '/networkPolicy/metricsFrom': at(network, 'ingress', 0, 'from'),
    '/networkPolicy/apiServer/ports': ports.map(({ port }) => port),
    '/admissionPolicy/treatAsNoExecute': JSON.parse(evicting),
    '/historyDays': Number(found(deployment, /--history-days=(.*)/)),
    '/agent/installation': found(read('../agent/settings.yaml'), /name: SERVICE\n *value: (.*)/),
  };
  const leavesOf = (value: unknown, path = ''): readonly (readonly [string, unknown])[] =>
    parts.get(path)?.properties && !(path in decided)
      ? Object.entries(Fields.parse(value)).flatMap(([name, inner]) => leavesOf(inner, `${path}/${name}`))
      : [[path, value]];
  const on = leavesOf(load(read('values.yaml'))).filter(
    ([, value]) => !['""', 'false', '[]', '{}'].includes(JSON.stringify(value)),
  );
  assert.deepEqual(Object.fromEntries(on), decided);
});

/** Values that count in one mode, and the templates that only it includes. */
const OF_MODE = {
  service: { values: /^\/(service\/|rbac\/userRoles$)/, file: '_policy.tpl' },
  agent: { values: /^\/agent\//, file: '_agent.tpl' },
} as const;

for (const [mode, other] of [
  ['service', OF_MODE.agent],
  ['agent', OF_MODE.service],
] as const)
  test(`the templates use each value that counts in mode ${mode}`, () => {
    const files = readdirSync(join(CHART, 'templates')).filter((name) => /\.(yaml|tpl)$/.test(name));
    const texts = files.filter((name) => name !== other.file).map((name) => read(`templates/${name}`));
    const open: ('always' | 'here' | 'elsewhere')[] = [];
    const used = texts
      .join('')
      .split(/(?={{)/)
      .filter((part) => {
        const [, word, condition = ''] = /^{{-? *(if|with|range|define|else|end)\b([^}]*)/.exec(part) ?? [];
        const of = /eq \.Values\.mode "(\w+)"/.exec(condition)?.[1] ?? 'always';
        const last = word === 'end' || word === 'else' ? open.pop() : undefined;
        if (word === 'else')
          open.push(last === 'here' ? 'elsewhere' : last === 'elsewhere' ? 'here' : 'always');
        else if (word && word !== 'end') open.push(of === 'always' ? of : of === mode ? 'here' : 'elsewhere');
        return !open.includes('elsewhere');
      });
    const text = used.join('').replaceAll('$apiServer', '.Values.networkPolicy.apiServer');
    const leaves = [...parts].filter(([path, part]) => !path.includes('[]') && !meant(part).properties);
    const unused = leaves
      .map(([path]) => path)
      .filter((path) => !other.values.test(path) && !/^\/(global|image|resources)\b/.test(path))
      .filter((path) => !text.includes(`.Values${path.replaceAll('/', '.')}`));
    assert.deepEqual(unused, []);
  });

test('lists the policy settings that the service reads', () => {
  const template = read('templates/_policy.tpl');
  const listed = (name: string): readonly string[] =>
    (new RegExp(`define "taintward\\.${name}" -}}\\n(.*)\\n`).exec(template)?.[1] ?? '').split(' ');
  const Settings = z.object({ properties: Fields });
  const { properties } = Settings.parse(policyJsonSchema());
  assert.deepEqual(listed('policySettings'), Object.keys(properties));
  const { items } = z.object({ items: Settings }).parse(properties['exclude']);
  assert.deepEqual(listed('policyEntrySettings'), Object.keys(items.properties));
});

test('limits historyDays to the range of the service', () => {
  const { minimum, maximum } = parts.get('/historyDays') ?? {};
  assert.deepEqual([minimum, maximum], [MIN_HISTORY_DAYS, MAX_HISTORY_DAYS]);
});

test('accepts the names that an agent accepts, and no others', () => {
  const names = [
    'a',
    'edge-1',
    'x'.repeat(21),
    'x'.repeat(22),
    '1-edge',
    'Edge',
    'e_1',
    'Prod_1',
    'a:b/c',
    'a#b',
    'a b',
    'a*',
    'a?',
    'a$',
  ];
  const accepted = (path: string) => {
    const pattern = new RegExp(parts.get(path)?.pattern ?? assert.fail(path));
    return names.filter((name) => pattern.test(name));
  };
  const readBy = (schema: z.ZodType) => names.filter((name) => schema.safeParse(name).success);
  assert.deepEqual(accepted('/agent/id'), readBy(agentIdSchema));
  assert.deepEqual(accepted('/agent/cluster'), readBy(agentClusterSchema));
});

test('has the version of the installed release', () => {
  const { version, appVersion } = z
    .object({ version: z.string(), appVersion: z.string() })
    .parse(load(read('Chart.yaml')));
  assert.deepEqual([version, appVersion], [VERSION, VERSION]);
});
