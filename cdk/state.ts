import { DefaultStackSynthesizer, Fn, RemovalPolicy, Stack, Tags } from 'aws-cdk-lib';
import { AttributeType, BillingMode, ProjectionType, StreamViewType, Table } from 'aws-cdk-lib/aws-dynamodb';
import { AnyPrincipal, Effect, PolicyDocument, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import type { tableVariables, ValuesOf } from '#shared/aws/environment.ts';
import { defined } from '#shared/defined.ts';
import { CLUSTER_PREFIX } from '#shared/state/dynamodb/dynamodb-item.ts';
import { LEASE_PREFIX } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { RATE_PREFIX } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { FLEET_KEY } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import {
  CLUSTER_INDEX,
  HISTORY_DAYS_TAG,
  RELEASE_TAG,
  TTL_ATTRIBUTE,
} from '#shared/state/dynamodb/table-definition.ts';
import { VERSION } from '#shared/version.ts';
import { dataKeyOf, grantDataKey } from './data-key.ts';
import { type Conditions, type Grantee, grant, grantWildcard } from './grantee.ts';

export interface StateProps {
  readonly tableName: string;
  /** True if the table outlives the stack, and only the stack's own deployment may delete it. */
  readonly retain: boolean;
  readonly historyDays: number;
}

/**
 * Beside conditions on keys: `ForAllValues` is true for a request without any (IAM User Guide, "Single-valued vs.
 * multivalued context keys").
 */
const NAMES_KEYS = { Null: { 'dynamodb:LeadingKeys': 'false' } } as const;

/** Returns a condition for the partitions that match one of the patterns, and no others. */
export const onlyKeys = (...patterns: readonly string[]): Conditions => ({
  ...NAMES_KEYS,
  'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': patterns },
});

export const dynamoDb = (action: string): string => `dynamodb:${action}`;

const KEY_ATTRIBUTES = ['pk', 'sk', 'clusterKey', 'clusterSort'];
/** The attributes written for stops, holds and releases, and for each in the audit log. */
const HOLDING_ATTRIBUTES = [
  ...KEY_ATTRIBUTES,
  ...['revision', 'stop', 'stops', 'stoppedAt', 'resumedFrom', 'holds', 'trips'],
  ...['cluster', 'actor', 'at', 'kind', 'message', 'reason', 'ttl'],
];
const REGISTRATION_ATTRIBUTES = [...KEY_ATTRIBUTES, 'addedAt', 'access'];

/** The only table: scheduled evictions, leases, the registry of clusters, and their rules. */
export class State extends Construct {
  readonly table: Table;
  readonly #tableName: string;

  constructor(scope: Construct, id: string, { tableName, retain, historyDays }: StateProps) {
    super(scope, id);
    this.#tableName = tableName;
    const text = (name: string) => ({ name, type: AttributeType.STRING });
    this.table = new Table(this, 'Table', {
      tableName,
      partitionKey: text('pk'),
      sortKey: text('sk'),
      billingMode: BillingMode.PAY_PER_REQUEST,
      timeToLiveAttribute: TTL_ATTRIBUTE,
      // Expired items must be readable, and other images are not needed.
      stream: StreamViewType.OLD_IMAGE,
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      ...defined({ encryptionKey: dataKeyOf(this) }),
      // A failed first deployment deletes its empty table again, which otherwise would block the next one.
      removalPolicy: retain ? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE : RemovalPolicy.DESTROY,
      resourcePolicy: new PolicyDocument({
        statements: [overTlsOnly(), ...(retain ? [deletedByDeploymentsOnly(Stack.of(this))] : [])],
      }),
    });
    Tags.of(this.table).add(HISTORY_DAYS_TAG, String(historyDays));
    Tags.of(this.table).add(RELEASE_TAG, VERSION);
    this.table.addGlobalSecondaryIndex({
      indexName: CLUSTER_INDEX,
      partitionKey: text('clusterKey'),
      sortKey: text('clusterSort'),
      projectionType: ProjectionType.KEYS_ONLY,
    });
  }

  /**
   * Writes partitions of nodes, reads them and the rules. Transactions need the permissions of the operations within
   * (DynamoDB Developer Guide, "Using IAM with DynamoDB transactions").
   */
  bindPartitions(grantee: Grantee): void {
    const reads = ['GetItem', 'BatchGetItem', 'Query'];
    const writes = ['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem'];
    grantDataKey(grantee);
    this.#bind(grantee, reads, [this.table.tableArn]);
    this.#bind(grantee, writes, [this.table.tableArn], {
      ...NAMES_KEYS,
      'ForAllValues:StringNotLike': {
        'dynamodb:LeadingKeys': [`${CLUSTER_PREFIX}*`, `${LEASE_PREFIX}*`, `${RATE_PREFIX}*`, FLEET_KEY],
      },
    });
  }

  /** Allows a function to take permits at the policy's eviction rates, and to store the proof that evictions work. */
  bindRates(grantee: Grantee): void {
    this.#bind(grantee, ['UpdateItem'], [this.table.tableArn], onlyKeys(`${RATE_PREFIX}*`));
  }

  /**
   * Allows the relay to write leases and the guards' holds, of all clusters or of the named ones, and nothing else. It may read
   * the registry, the clusters' rules, and the partitions of nodes: tainted nodes, overdue evictions, and recent ones. A process
   * that may write a cluster's lease can act as its leader.
   */
  bindLeases(grantee: Grantee, clusters: readonly string[] = ['*']): void {
    this.bindRegistry(grantee);
    this.#bindTags(grantee);
    this.#bind(grantee, ['GetItem', 'Query'], [this.table.tableArn]);
    this.#bind(
      grantee,
      ['UpdateItem'],
      [this.table.tableArn],
      onlyKeys(...clusters.map((name) => `${LEASE_PREFIX}${name}`)),
    );
  }

  /** Allows an operator to see the deployed release, and how long entries in the audit log are kept. */
  #bindTags(grantee: Grantee): void {
    this.#bind(grantee, ['DescribeTable', 'ListTagsOfResource'], [this.table.tableArn]);
  }

  /** Allows a process to read the registry and the other items of the index. */
  bindRegistry(grantee: Grantee): void {
    grantDataKey(grantee);
    this.#bind(grantee, ['BatchGetItem'], [this.table.tableArn]);
    this.#bind(grantee, ['Query'], [`${this.table.tableArn}/index/${CLUSTER_INDEX}`]);
  }

  /** Allows an operator to read everything: the table holds no secrets. */
  bindView(grantee: Grantee): void {
    this.bindRegistry(grantee);
    this.#bindTags(grantee);
    this.#bind(grantee, ['GetItem', 'Query'], [this.table.tableArn]);
  }

  /** Stop, hold, release, and the audit of these; neither policies nor clusters. */
  bindHolding(grantee: Grantee): void {
    this.#bindStoredRules(grantee, HOLDING_ATTRIBUTES);
  }

  /** Allows an operator to write all rules of clusters, and to register clusters. */
  bindRuling(grantee: Grantee): void {
    this.#bindStoredRules(grantee, [...HOLDING_ATTRIBUTES, 'policy']);
    this.#bind(grantee, ['PutItem', 'DeleteItem'], [this.table.tableArn], {
      ...onlyKeys(`${CLUSTER_PREFIX}*`),
      'ForAllValues:StringEquals': { 'dynamodb:Attributes': REGISTRATION_ATTRIBUTES },
    });
  }

  /** Operator controls and audit entries are updated by attribute and never written as a whole. */
  #bindStoredRules(grantee: Grantee, attributes: readonly string[]): void {
    this.#bindTags(grantee);
    this.#bind(grantee, ['UpdateItem'], [this.table.tableArn], {
      ...onlyKeys(`${CLUSTER_PREFIX}*`, `${LEASE_PREFIX}*`, FLEET_KEY),
      'ForAllValues:StringEquals': { 'dynamodb:Attributes': attributes },
    });
  }

  /** Allows a function to read the table's stream; returns its ARN. */
  bindStream(grantee: Grantee): string {
    const streamArn = this.table.tableStreamArn;
    if (streamArn === undefined) throw new Error('the table was made without a stream');
    grant(grantee, ['DescribeStream', 'GetRecords', 'GetShardIterator'].map(dynamoDb), [streamArn]);
    const resourceName = `${this.#tableName}/stream/*`;
    grantWildcard(grantee, {
      action: 'dynamodb:ListStreams',
      resources: [Stack.of(this).formatArn({ service: 'dynamodb', resource: 'table', resourceName })],
      reason: 'Lambda looks up the streams of our own table; the action knows no single stream.',
    });
    return streamArn;
  }

  #bind(grantee: Grantee, actions: readonly string[], resourceArns: string[], conditions?: Conditions): void {
    grantee.setEnvironment({ TABLE_NAME: this.table.tableName } satisfies ValuesOf<typeof tableVariables>);
    grant(grantee, actions.map(dynamoDb), resourceArns, conditions);
  }
}

function overTlsOnly(): PolicyStatement {
  return new PolicyStatement({
    sid: 'TlsOnly',
    effect: Effect.DENY,
    principals: [new AnyPrincipal()],
    actions: ['dynamodb:*'],
    resources: ['*'],
    conditions: { Bool: { 'aws:SecureTransport': 'false' } },
  });
}

/**
 * Only CloudFormation may delete the table, with the role that deploys the stack, if there is one, or as its caller. DynamoDB's
 * own protection would prevent a failed first deployment from deleting it.
 */
function deletedByDeploymentsOnly({ synthesizer }: Stack): PolicyStatement {
  return new PolicyStatement({
    sid: 'DeletedByDeploymentsOnly',
    effect: Effect.DENY,
    principals: [new AnyPrincipal()],
    actions: ['dynamodb:DeleteTable'],
    resources: ['*'],
    conditions: {
      ...(synthesizer instanceof DefaultStackSynthesizer && {
        ArnNotEquals: { 'aws:PrincipalArn': Fn.sub(synthesizer.cloudFormationExecutionRoleArn) },
      }),
      'ForAllValues:StringNotEquals': { 'aws:CalledVia': 'cloudformation.amazonaws.com' },
    },
  });
}
