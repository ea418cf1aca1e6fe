import type { AttributeValue } from '@aws-sdk/client-dynamodb';

/**
 * Returns the size of an item in DynamoDB (Developer Guide, "Item sizes and formats"). Names and text count as UTF-8. A
 * number counts as one byte for every two digits plus one. A list or map counts as three bytes plus one for each
 * element.
 */
export const itemBytes = (item: Record<string, AttributeValue>): number =>
  sum(Object.entries(item).map(([name, value]) => Buffer.byteLength(name) + valueBytes(value)));

function valueBytes(value: AttributeValue): number {
  if (value.S !== undefined) return Buffer.byteLength(value.S);
  if (value.N !== undefined) return Math.ceil(value.N.replace(/\.?0+$/, '').length / 2) + 1;
  if (value.L !== undefined) return 3 + sum(value.L.map((each) => 1 + valueBytes(each)));
  if (value.M !== undefined) return 3 + Object.keys(value.M).length + itemBytes(value.M);
  return 1;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
