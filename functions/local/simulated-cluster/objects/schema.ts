import { readFileSync } from 'node:fs';
import { API_VERSIONS, KINDS, type ResourceName } from './kinds.ts';

/** One schema of the document, as far as it is read here. */
export interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly allOf?: readonly Schema[];
  readonly default?: unknown;
  readonly $ref?: string;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'map' | 'set';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular';
  readonly 'x-kubernetes-patch-merge-key'?: string;
  readonly 'x-kubernetes-patch-strategy'?: string;
}

let schemas: Readonly<Record<string, Schema>> | undefined;

/**
 * The schemas of all kinds served and of what they are made of: those that Kubernetes 1.36 serves at `/openapi/v3`, each
 * description cut to its first sentence.
 */
export function allSchemas(): Readonly<Record<string, Schema>> {
  schemas ??= JSON.parse(readFileSync(new URL('./schemas.json', import.meta.url), 'utf8')) as Readonly<
    Record<string, Schema>
  >;
  return schemas;
}

/** The schema of a kind of object. */
export function schemaOf(resource: ResourceName): Schema {
  const version = API_VERSIONS[resource];
  const group = version.includes('/') ? version.replace('/', '.') : `core.${version}`;
  return allSchemas()[`io.k8s.api.${group}.${KINDS[resource]}`] ?? {};
}

const REFERENCE = '#/components/schemas/';

/** A schema with what it refers to; what it says itself comes first. */
export function resolved({ allOf, $ref, ...own }: Schema): Schema {
  const reference = $ref ?? allOf?.[0]?.$ref;
  if (reference === undefined) return own;
  return { ...allSchemas()[reference.slice(REFERENCE.length)], ...own };
}

/** How values of a schema are merged, and owned. Upstream: `structured-merge-diff`. */
export type Shape =
  | { readonly kind: 'whole' }
  | { readonly kind: 'fields'; readonly of: (name: string) => Shape | undefined }
  | { readonly kind: 'map'; readonly item: Shape }
  | { readonly kind: 'set' }
  | {
      readonly kind: 'keyed';
      readonly keys: readonly string[];
      readonly defaults: Readonly<Record<string, unknown>>;
      readonly item: Shape;
    };

const WHOLE: Shape = { kind: 'whole' };
const shapes = new WeakMap<Schema, Shape>();

/** The shape of a schema; lists are replaced whole unless they say otherwise. */
export function shapeOf(schema: Schema): Shape {
  const known = shapes.get(schema);
  if (known !== undefined) return known;
  const shape = makeShape(resolved(schema));
  shapes.set(schema, shape);
  return shape;
}

function makeShape(schema: Schema): Shape {
  if (schema['x-kubernetes-map-type'] === 'atomic') return WHOLE;
  const { properties, additionalProperties, items } = schema;
  if (properties !== undefined) {
    return {
      kind: 'fields',
      of: (name) => {
        const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
        return property === undefined ? undefined : shapeOf(property);
      },
    };
  }
  if (additionalProperties !== undefined) return { kind: 'map', item: shapeOf(additionalProperties) };
  if (items === undefined) return WHOLE;
  if (schema['x-kubernetes-list-type'] === 'set') return { kind: 'set' };
  const keys = schema['x-kubernetes-list-map-keys'];
  if (schema['x-kubernetes-list-type'] !== 'map' || keys === undefined) return WHOLE;
  const defaults = Object.fromEntries(
    keys.map((key) => [key, resolved(items).properties?.[key]?.default] as const),
  );
  return { kind: 'keyed', keys, defaults, item: shapeOf(items) };
}

/** The paths of fields that a schema does not know, such as `spec.replica`; empty when it knows them all. */
export function unknownFields(schema: Schema, value: unknown, path = ''): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { properties, additionalProperties, items } = resolved(schema);
  if (Array.isArray(value)) {
    if (items === undefined) return [];
    return value.flatMap((item, index) => unknownFields(items, item, `${path}[${index}]`));
  }
  return Object.entries(value).flatMap(([name, field]) => {
    const at = path === '' ? name : `${path}.${name}`;
    if (additionalProperties !== undefined) return unknownFields(additionalProperties, field, at);
    if (properties === undefined) return [];
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return property === undefined ? [at] : unknownFields(property, field, at);
  });
}
