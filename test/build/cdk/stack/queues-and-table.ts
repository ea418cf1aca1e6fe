import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import { CLUSTER_INDEX } from '#shared/state/dynamodb/table-definition.ts';
import { tableDefinition } from '#test/aws/table-definition.ts';
import { resourceWith } from './resources.ts';
import { serviceOf, synthesized } from './synthesized.ts';

const TABLE = 'AWS::DynamoDB::Table';

let template: Template;
before(() => {
  template = synthesized();
});

describe('the table', () => {
  const properties = () => resourceWith(template, TABLE, 'TableName', 'taintward').properties;
  const sorted = (attributes: unknown) =>
    [...(attributes as { AttributeName: string }[])].sort((a, b) =>
      a.AttributeName < b.AttributeName ? -1 : 1,
    );

  test('has the keys, the sparse index, and the billing mode that the code requires', () => {
    const definition = tableDefinition('taintward');
    const table = properties();
    assert.deepEqual(table['KeySchema'], definition.KeySchema);
    assert.deepEqual(table['GlobalSecondaryIndexes'], definition.GlobalSecondaryIndexes);
    assert.deepEqual(sorted(table['AttributeDefinitions']), sorted(definition.AttributeDefinitions));
    assert.equal(table['BillingMode'], definition.BillingMode);
    assert.match(JSON.stringify(table['GlobalSecondaryIndexes']), new RegExp(`"${CLUSTER_INDEX}"`));
  });
});

describe('destroying the stack', () => {
  const retained = (given: Template) =>
    Object.values(
      given.toJSON()['Resources'] as Record<
        string,
        { Type: string; DeletionPolicy?: string; UpdateReplacePolicy?: string }
      >,
    )
      .filter(({ DeletionPolicy = 'Delete' }) => DeletionPolicy !== 'Delete')
      .map(({ Type, DeletionPolicy, UpdateReplacePolicy }) => [Type, DeletionPolicy, UpdateReplacePolicy]);

  test('is refused while the table is retained', () => {
    const isProtected = (retainTable: boolean) =>
      serviceOf({ 'taintward:retainTable': retainTable }).terminationProtection;
    assert.deepEqual([true, false].map(isProtected), [true, false]);
  });

  test('leaves no resources when configured so', () => {
    const all = synthesized({ 'taintward:retainTable': 'false' });
    assert.deepEqual(retained(all), []);
    assert.doesNotMatch(JSON.stringify(all.toJSON()), /DeletedByDeploymentsOnly/);
  });
});
