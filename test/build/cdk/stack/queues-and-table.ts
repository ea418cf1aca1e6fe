import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Template } from 'aws-cdk-lib/assertions';
import { EXPIRY_DEAD_LETTER_NAME, QUEUES, visibilitySeconds } from '#shared/queues/queue-set.ts';
import { CLUSTER_INDEX, TTL_ATTRIBUTE, tableDefinition } from '#shared/store/table-definition.ts';
import { VERSION } from '#shared/version.ts';
import { readable, resourcesOf, resourceWith, statementsIn } from './resources.ts';
import { synthesized } from './synthesized.ts';

const QUEUE = 'AWS::SQS::Queue';
const TABLE = 'AWS::DynamoDB::Table';
const WITHOUT_TLS = { Bool: { 'aws:SecureTransport': 'false' } };

let template: Template;
before(() => {
  template = synthesized();
});

const queueNamed = (name: string) => resourceWith(template, QUEUE, 'QueueName', `taintward-${name}`);
const specs = Object.values(QUEUES);
const deadLetterNames = [...specs.map(({ deadLetterName }) => deadLetterName), EXPIRY_DEAD_LETTER_NAME];

describe('each queue', () => {
  test('hides a message for six runs of its function and keeps it for four days', () => {
    for (const spec of specs) {
      const { properties } = queueNamed(spec.name);
      assert.equal(properties['VisibilityTimeout'], visibilitySeconds(spec));
      assert.equal(properties['MessageRetentionPeriod'], 4 * 24 * 3600);
      assert.equal(properties['MaximumMessageSize'], 1_048_576);
    }
  });

  test('has a dead-letter queue of its own kind, which keeps them for two weeks', () => {
    for (const spec of specs) {
      const { id, properties } = queueNamed(spec.deadLetterName);
      assert.deepEqual(readable(queueNamed(spec.name).properties['RedrivePolicy']), {
        deadLetterTargetArn: `<${id}.Arn>`,
        maxReceiveCount: spec.maxReceiveCount,
      });
      assert.equal(properties['FifoQueue'], spec.fifo || undefined);
      assert.equal(properties['MessageRetentionPeriod'], 14 * 24 * 3600);
    }
  });

  test('has its limits and deduplication per message group, when it is FIFO', () => {
    for (const { fifo, name, deadLetterName } of specs) {
      for (const { properties } of [queueNamed(name), queueNamed(deadLetterName)]) {
        assert.equal(properties['DeduplicationScope'], fifo ? 'messageGroup' : undefined);
        assert.equal(properties['FifoThroughputLimit'], fifo ? 'perMessageGroupId' : undefined);
      }
    }
  });

  test('is encrypted, and closed to whoever comes without TLS', () => {
    const policies = [...resourcesOf(template, 'AWS::SQS::QueuePolicy').values()];
    for (const [id, properties] of resourcesOf(template, QUEUE)) {
      assert.equal(properties['SqsManagedSseEnabled'], true);
      const policy = policies.find(
        (each) => JSON.stringify(each['Queues']) === JSON.stringify([{ Ref: id }]),
      );
      assert.ok(
        statementsIn(policy?.['PolicyDocument']).some(
          ({ Effect, Action, Condition }) =>
            Effect === 'Deny' && Action.includes('sqs:*') && isDeepStrictEqual(Condition, WITHOUT_TLS),
        ),
      );
    }
  });
});

describe('a dead-letter queue', () => {
  test('takes from its own queue alone', () => {
    for (const { name, deadLetterName } of specs) {
      assert.deepEqual(readable(queueNamed(deadLetterName).properties['RedriveAllowPolicy']), {
        redrivePermission: 'byQueue',
        sourceQueueArns: [`arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:taintward-${name}`],
      });
    }
  });

  test('of a function takes from no queue', () => {
    assert.deepEqual(queueNamed(EXPIRY_DEAD_LETTER_NAME).properties['RedriveAllowPolicy'], {
      redrivePermission: 'denyAll',
    });
  });

  test('is known to every test here', () => {
    assert.equal(resourcesOf(template, QUEUE).size, specs.length + deadLetterNames.length);
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

  test('takes what is planned from one moment to the next, and its index with it', () => {
    const warm = resourceWith(
      synthesized({ 'taintward:warmWrites': '20000' }),
      TABLE,
      'TableName',
      'taintward',
    );
    const [index] = warm.properties['GlobalSecondaryIndexes'] as { WarmThroughput: unknown }[];
    for (const { WarmThroughput } of [warm.properties, index ?? {}]) {
      assert.deepEqual(WarmThroughput, { WriteUnitsPerSecond: 20_000 });
    }
    assert.equal(properties()['WarmThroughput'], undefined);
  });

  test('removes what is over, and tells what it was', () => {
    assert.deepEqual(properties()['TimeToLiveSpecification'], {
      AttributeName: TTL_ATTRIBUTE,
      Enabled: true,
    });
    assert.deepEqual(properties()['StreamSpecification'], { StreamViewType: 'OLD_IMAGE' });
  });

  test('says by tags for how long history and audit are kept, and which release was deployed', () => {
    assert.deepEqual(properties()['Tags'], [
      { Key: 'taintward:history-days', Value: '7' },
      { Key: 'taintward:release', Value: VERSION },
    ]);
  });

  test('can be restored to any point in time', () => {
    assert.deepEqual(properties()['PointInTimeRecoverySpecification'], { PointInTimeRecoveryEnabled: true });
  });

  test('is closed to whoever comes without TLS, and deleted by nobody but CloudFormation', () => {
    const { PolicyDocument } = properties()['ResourcePolicy'] as {
      PolicyDocument: { Statement: readonly object[] };
    };
    assert.deepEqual(readable(PolicyDocument.Statement), [
      {
        Sid: 'TlsOnly',
        Effect: 'Deny',
        Principal: { AWS: '*' },
        Action: 'dynamodb:*',
        Resource: '*',
        Condition: WITHOUT_TLS,
      },
      {
        Sid: 'DeletedByDeploymentsOnly',
        Effect: 'Deny',
        Principal: { AWS: '*' },
        Action: 'dynamodb:DeleteTable',
        Resource: '*',
        Condition: {
          ArnNotEquals: {
            'aws:PrincipalArn':
              'arn:<AWS::Partition>:iam::<AWS::AccountId>:role/cdk-hnb659fds-cfn-exec-role-<AWS::AccountId>-<AWS::Region>',
          },
          'ForAllValues:StringNotEquals': { 'aws:CalledVia': 'cloudformation.amazonaws.com' },
        },
      },
    ]);
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
