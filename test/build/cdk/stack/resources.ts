import assert from 'node:assert/strict';
import type { Template } from 'aws-cdk-lib/assertions';
import * as z from 'zod';

const Resource = z.looseObject({
  Type: z.string(),
  Properties: z.record(z.string(), z.unknown()).default({}),
});
export type Properties = Readonly<Record<string, unknown>>;

/** Returns the properties of all resources of a type, by logical ID. */
export function resourcesOf(template: Template, type: string): ReadonlyMap<string, Properties> {
  const found = Object.entries(template.findResources(type));
  return new Map(found.map(([id, resource]) => [id, Resource.parse(resource).Properties]));
}

/** Returns the only resource of a type whose property has this value. */
export function resourceWith(template: Template, type: string, name: string, value: unknown) {
  const found = [...resourcesOf(template, type)].filter(([, properties]) => properties[name] === value);
  assert.equal(found.length, 1, `${found.length} resources ${type} with ${name} ${String(value)}`);
  const [[id, properties] = ['', {}]] = found;
  return { id, properties };
}

/**
 * Returns a value of the template with each reference that CloudFormation fills in as a readable text: `<Id>`,
 * `<Id.Arn>`, `<AWS::Region>`.
 */
export function readable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== 'object' || value === null) return value;
  const fields = value as Record<string, unknown>;
  if (typeof fields['Ref'] === 'string') return `<${fields['Ref']}>`;
  const text = fields['Fn::Sub'];
  if (typeof text === 'string') return text.replace(/\$\{([^}]+)\}/g, '<$1>');
  const attribute = fields['Fn::GetAtt'];
  if (Array.isArray(attribute)) return `<${attribute.join('.')}>`;
  const join = fields['Fn::Join'];
  if (Array.isArray(join)) {
    const [separator, parts] = join as [string, unknown[]];
    return parts.map(readable).join(separator);
  }
  return Object.fromEntries(Object.entries(fields).map(([name, each]) => [name, readable(each)]));
}

const texts = z.union([z.string(), z.array(z.string())]).transform((value) => [value].flat());

/** Both forms have the same meaning. */
const everybody = z.literal('*').transform((): Record<string, string> => ({ AWS: '*' }));

const Policy = z.object({
  Statement: z.array(
    z.object({
      Effect: z.string(),
      Action: texts,
      Resource: texts.default([]),
      Principal: z.union([everybody, z.record(z.string(), z.string())]).optional(),
      Condition: z.unknown().optional(),
    }),
  ),
});
export type Statement = z.output<typeof Policy>['Statement'][number];

/** Returns the statements of a policy document in readable form. */
export const statementsIn = (document: unknown): readonly Statement[] =>
  Policy.parse(readable(document)).Statement;
