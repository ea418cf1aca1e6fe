import { isDeepStrictEqual } from 'node:util';

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** A template, and the names of the conditions that hold for it. */
export interface Variant {
  readonly holds: readonly string[];
  readonly template: JsonObject;
}

export interface MergedTemplate {
  readonly Description: Json;
  readonly Resources: JsonObject;
  readonly Outputs: JsonObject;
  readonly Conditions: JsonObject;
}

/** A value in the variants that have the same resource; `undefined`: it is absent there. */
interface Case<T> {
  readonly holds: readonly string[];
  readonly value: T;
}

/** A decision by conditions: the value, or a condition with the decisions where it holds and where not. */
type Decision<T> = { readonly value: T } | readonly [condition: string, yes: Decision<T>, no: Decision<T>];

const NO_VALUE = { Ref: 'AWS::NoValue' };

/**
 * Merges the templates into one: a resource or output that only some have gets a condition, and values that differ become
 * `Fn::If`. Where a combination of conditions is no variant, variants with the same values decide. Throws if no
 * condition alone explains a difference.
 */
export function mergeTemplates(variants: readonly Variant[]): MergedTemplate {
  const conditions: Record<string, Json> = {};
  const section = (name: string) =>
    variants.map(({ holds, template }) => ({ holds, value: (template[name] ?? {}) as JsonObject }));
  for (const { value } of section('Conditions')) Object.assign(conditions, value);
  const merged = (name: string) => {
    const cases = section(name);
    const ids = [...new Set(cases.flatMap(({ value }) => Object.keys(value)))].toSorted();
    return Object.fromEntries(ids.map((id) => [id, mergedResource(at(cases, id), conditions)]));
  };
  return {
    Description: variants[0]?.template['Description'] ?? '',
    Resources: merged('Resources'),
    Outputs: merged('Outputs'),
    Conditions: conditions,
  };
}

const at = (cases: readonly Case<JsonObject>[], key: string): readonly Case<Json | undefined>[] =>
  cases.map(({ holds, value }) => ({ holds, value: value[key] }));

function mergedResource(cases: readonly Case<Json | undefined>[], conditions: Record<string, Json>): Json {
  const present = cases.filter((one): one is Case<JsonObject> => one.value !== undefined);
  const condition = presence(
    decide(cases.map(({ holds, value }) => ({ holds, value: value !== undefined }))),
    conditions,
  );
  const { Properties: _, ...first } = present[0]?.value ?? {};
  const body = first['Type'] === undefined ? (merge(present) as JsonObject) : first;
  const properties = first['Type'] === undefined ? undefined : merge(at(present, 'Properties'));
  // CloudFormation ignores dependencies on resources whose condition does not hold, and permits no Fn::If here.
  const dependencies = new Set(present.flatMap(({ value }) => (value['DependsOn'] ?? []) as string[]));
  return {
    ...body,
    ...(condition !== undefined && { Condition: condition }),
    ...(dependencies.size > 0 && { DependsOn: [...dependencies] }),
    ...(properties !== undefined && { Properties: properties }),
  };
}

/** Merges values: objects by their keys, lists of one length by their elements, and all others by `Fn::If`. */
function merge(cases: readonly Case<Json | undefined>[]): Json | undefined {
  const [first] = cases;
  if (first && cases.every(({ value }) => isDeepStrictEqual(value, first.value))) return first.value;
  if (cases.every((one): one is Case<JsonObject> => isPlain(one.value))) {
    const keys = new Set(cases.flatMap(({ value }) => Object.keys(value)));
    return Object.fromEntries([...keys].map((key) => [key, merge(at(cases, key)) ?? NO_VALUE]));
  }
  const lengths = new Set(cases.map(({ value }) => (Array.isArray(value) ? value.length : -1)));
  const [length = -1] = lengths;
  if (lengths.size === 1 && length >= 0)
    return Array.from(
      { length },
      (_, index) =>
        merge(cases.map(({ holds, value }) => ({ holds, value: (value as Json[])[index] }))) ?? NO_VALUE,
    );
  const differing = relevant(cases);
  const [yes, no] = halves(cases, differing);
  return { 'Fn::If': [differing, merge(yes) ?? NO_VALUE, merge(no) ?? NO_VALUE] };
}

/** Intrinsic functions are values, not objects with keys. */
const isPlain = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !Object.keys(value).some((key) => key === 'Ref' || key.startsWith('Fn::'));

/** Returns the first condition that alone makes a difference between two of the cases. */
function relevant<T>(cases: readonly Case<T>[]): string {
  for (const condition of new Set(cases.flatMap(({ holds }) => holds))) {
    const [yes, no] = halves(cases, condition);
    const differs = yes.some(({ holds, value }) => {
      const others = holds.filter((name) => name !== condition);
      return no.some((other) => sameSet(others, other.holds) && !isDeepStrictEqual(value, other.value));
    });
    if (differs) return condition;
  }
  throw new Error('no condition alone explains the difference of a value');
}

const sameSet = (one: readonly string[], other: readonly string[]): boolean =>
  new Set(one).symmetricDifference(new Set(other)).size === 0;

const halves = <T>(cases: readonly Case<T>[], condition: string) =>
  [
    cases.filter(({ holds }) => holds.includes(condition)),
    cases.filter(({ holds }) => !holds.includes(condition)),
  ] as const;

function decide<T>(cases: readonly Case<T>[]): Decision<T> {
  const [first] = cases;
  if (first && cases.every(({ value }) => isDeepStrictEqual(value, first.value))) return first;
  const condition = relevant(cases);
  const [yes, no] = halves(cases, condition);
  return [condition, decide(yes), decide(no)];
}

/** Returns the name of the condition under which a resource exists, and adds it; `undefined`: it always exists. */
function presence(decision: Decision<boolean>, conditions: Record<string, Json>): string | undefined {
  if (!isSplit(decision)) return undefined;
  const [condition, yes, no] = decision;
  const not = { 'Fn::Not': [{ Condition: condition }] };
  const add = (name: string, rule: Json): string => {
    conditions[name] = rule;
    return name;
  };
  if (!isSplit(yes) && !isSplit(no)) return yes.value ? condition : add(`Not${condition}`, not);
  if (!isSplit(yes)) {
    const rest = presence(no, conditions) ?? '';
    return yes.value
      ? add(`${condition}Or${rest}`, { 'Fn::Or': [{ Condition: condition }, { Condition: rest }] })
      : add(`Not${condition}And${rest}`, { 'Fn::And': [not, { Condition: rest }] });
  }
  if (isSplit(no)) throw new Error('a resource exists by a choice that has no name here');
  const rest = presence(yes, conditions) ?? '';
  return no.value
    ? add(`Not${condition}Or${rest}`, { 'Fn::Or': [not, { Condition: rest }] })
    : add(`${condition}And${rest}`, { 'Fn::And': [{ Condition: condition }, { Condition: rest }] });
}

const isSplit = <T>(decision: Decision<T>): decision is readonly [string, Decision<T>, Decision<T>] =>
  Array.isArray(decision);
