import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';

/** An item, or some of its attributes, as plain values: text, numbers, booleans, lists, objects. */
export type Item = Readonly<Record<string, unknown>>;

export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** Prefix of the partition key of a cluster's registration and policy, which operators change. */
export const CLUSTER_PREFIX = 'CLUSTER#';

/** An update of some of an item's attributes. All others stay, whether this version of the code knows them or not. */
export interface Update {
  readonly key: Key;
  /** New values. `undefined` = removed. */
  readonly set?: Item;
  /** Increments, added to the stored numbers or to 0. */
  readonly add?: Readonly<Record<string, number>>;
  /** Values that the stored item must have for anything to be written. `undefined` = has no such attribute. */
  readonly expected?: Item;
}

/** One action of a transaction. */
export type Write = { readonly put: Item } | { readonly update: Update } | { readonly delete: Key };

/**
 * Returns an item as plain values. A number that JavaScript cannot represent exactly stays a text, which the field's
 * parser rejects; Taintward writes none.
 */
export const fromAttributes = (attributes: Record<string, AttributeValue>): Item =>
  unmarshall(attributes, {
    wrapNumbers: (text) => (Math.abs(Number(text)) > Number.MAX_SAFE_INTEGER ? text : Number(text)),
  });

/**
 * Omits `undefined` fields. Any keys are possible, such as `constructor`; an object is never treated as a class
 * instance.
 */
export const toAttributes = (item: object): Record<string, AttributeValue> =>
  marshall(item, { removeUndefinedValues: true, convertClassInstanceToMap: true });

/** Each attribute is `#name`, its new value `:name`, its increment `:add_name`, its expected value `:expected_name`. */
export function updateExpression({ set = {}, add = {}, expected = {} }: Update) {
  const changes: Record<'SET' | 'REMOVE' | 'ADD', string[]> = { SET: [], REMOVE: [], ADD: [] };
  const conditions: string[] = [];
  const names: Record<string, string> = {};
  const values: Record<string, unknown> = {};
  const term = (name: string, value: string, given: unknown) => {
    names[`#${name}`] = name;
    values[value] = given;
  };
  for (const [name, value] of Object.entries(set)) {
    term(name, `:${name}`, value);
    if (value === undefined) changes.REMOVE.push(`#${name}`);
    else changes.SET.push(`#${name} = :${name}`);
  }
  for (const [name, value] of Object.entries(add)) {
    term(name, `:add_${name}`, value);
    changes.ADD.push(`#${name} :add_${name}`);
  }
  for (const [name, value] of Object.entries(expected)) {
    term(name, `:expected_${name}`, value);
    conditions.push(value === undefined ? `attribute_not_exists(#${name})` : `#${name} = :expected_${name}`);
  }
  const clauses = Object.entries(changes).filter(([, parts]) => parts.length > 0);
  return {
    UpdateExpression: clauses.map(([word, parts]) => `${word} ${parts.join(', ')}`).join(' '),
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: toAttributes(values),
    ...(conditions.length > 0 ? { ConditionExpression: conditions.join(' AND ') } : {}),
  };
}
