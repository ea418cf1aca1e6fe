import { type Item, toAttribute } from './attribute-values.ts';

/** The part of an update that says what changes. */
export interface UpdateExpression {
  readonly UpdateExpression: string;
  readonly ExpressionAttributeNames: Record<string, string>;
  readonly ExpressionAttributeValues: Item;
}

/**
 * An update that sets the given attributes, removes those given as `undefined`, and leaves all others, known
 * to this version of the code or not, as they are. Every attribute is written `#name`, its value `:name`.
 */
export function updateExpression(attributes: Readonly<Record<string, unknown>>): UpdateExpression {
  const names = Object.keys(attributes);
  const set = names.filter((name) => attributes[name] !== undefined);
  const remove = names.filter((name) => attributes[name] === undefined);
  const clauses = [
    ...(set.length > 0 ? [`SET ${set.map((name) => `#${name} = :${name}`).join(', ')}`] : []),
    ...(remove.length > 0 ? [`REMOVE ${remove.map((name) => `#${name}`).join(', ')}`] : []),
  ];
  return {
    UpdateExpression: clauses.join(' '),
    ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
    ExpressionAttributeValues: Object.fromEntries(
      set.map((name) => [`:${name}`, toAttribute(attributes[name])]),
    ),
  };
}
