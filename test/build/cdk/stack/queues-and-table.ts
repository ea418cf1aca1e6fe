import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import { QUEUES, visibilitySeconds } from '#shared/queues/queue-set.ts';
import { CLUSTER_INDEX, TTL_ATTRIBUTE, tableDefinition } from '#shared/store/table-definition.ts';
import { resourcesOf, resourceWith } from './resources.ts';
import { synthesized } from './synthesized.ts';

const QUEUE = 'AWS::SQS::Queue';
const TABLE = 'AWS::DynamoDB::Table';

let template: Template;
before(() => {
  template = synthesized();
});

const queueNamed = (name: string) => resourceWith(template, QUEUE, 'QueueName', `taintward-${name}`);
const specs = Object.values(QUEUES);

describe('each queue', () => {
  test('hides a message for six runs of its function', () => {
    for (const spec of specs) {
      const { properties } = queueNamed(spec.name);
      assert.equal(properties['VisibilityTimeout'], visibilitySeconds(spec));
    }
  });
});

describe('the table', () => {
  const properties = () => resourceWith(template, TABLE, 'TableName', 'taintward').properties;
  const sorted = (attributes: unknown) =>
    [...(attributes as { AttributeName: string }[])].sort((a, b) =>
      a.AttributeName < b.AttributeName ? -1 : 1,
    );

  test('has the keys, the sparse index and the billing that the code is written for', () => {
    const definition = tableDefinition('taintward');
    const table = properties();
    assert.deepEqual(table['KeySchema'], definition.KeySchema);
    assert.deepEqual(table['GlobalSecondaryIndexes'], definition.GlobalSecondaryIndexes);
    assert.deepEqual(sorted(table['AttributeDefinitions']), sorted(definition.AttributeDefinitions));
    assert.equal(table['BillingMode'], definition.BillingMode);
    assert.match(JSON.stringify(table['GlobalSecondaryIndexes']), new RegExp(`"${CLUSTER_INDEX}"`));
  });

  test('removes what is over, and tells what it was', () => {
    assert.deepEqual(properties()['TimeToLiveSpecification'], {
      AttributeName: TTL_ATTRIBUTE,
      Enabled: true,
    });
    assert.deepEqual(properties()['StreamSpecification'], { StreamViewType: 'OLD_IMAGE' });
  });
});

describe('destroying the stack', () => {
  const retained = (of: Template) =>
    Object.values(
      of.toJSON()['Resources'] as Record<
        string,
        { Type: string; DeletionPolicy?: string; UpdateReplacePolicy?: string }
      >,
    )
      .filter(({ DeletionPolicy = 'Delete' }) => DeletionPolicy !== 'Delete')
      .map(({ Type, DeletionPolicy, UpdateReplacePolicy }) => [Type, DeletionPolicy, UpdateReplacePolicy]);

  test('leaves the table and nothing else; a first deployment that fails leaves not even that', () => {
    assert.deepEqual(retained(template), [[TABLE, 'RetainExceptOnCreate', 'Retain']]);
    // What cannot be deleted cannot be rolled back.
    assert.equal([...resourcesOf(template, TABLE).values()][0]?.['DeletionProtectionEnabled'], undefined);
  });

  test('leaves nothing at all when that is wanted', () => {
    const all = synthesized({ 'taintward:retainTable': 'false' });
    assert.deepEqual(retained(all), []);
    assert.doesNotMatch(JSON.stringify(all.toJSON()), /DeletedByDeploymentsOnly/);
  });

  test('finds the table again, should it be deployed once more: it is named by a text, not by a reference', () => {
    assert.equal([...resourcesOf(template, TABLE).values()][0]?.['TableName'], 'taintward');
  });
});
