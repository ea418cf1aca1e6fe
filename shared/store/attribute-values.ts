import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { convertToAttr, convertToNative, marshall, unmarshall } from '@aws-sdk/util-dynamodb';

export type Item = Record<string, AttributeValue>;

/** A value as DynamoDB stores it. Throws for what no item of ours holds: functions, symbols, class instances. */
export const toAttribute = (value: unknown): AttributeValue => convertToAttr(value);

/** An object as an item; a field that is `undefined` is left out. */
export const toItem = (fields: object): Item => marshall(fields, { removeUndefinedValues: true });

/** What a stored value says, unchecked. */
export const fromAttribute = (value: AttributeValue): unknown => convertToNative(value);

/** An item as an object, unchecked. */
export const fromItem = (item: Item): Record<string, unknown> => unmarshall(item);
