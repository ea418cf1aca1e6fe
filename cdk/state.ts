import { DefaultStackSynthesizer, Fn, RemovalPolicy, Stack, Tags } from 'aws-cdk-lib';
import {
  AttributeType,
  BillingMode,
  ProjectionType,
  StreamViewType,
  Table,
  TableEncryption,
} from 'aws-cdk-lib/aws-dynamodb';
import { AnyPrincipal, Effect, Grant, PolicyDocument, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import type { tableVariables, ValuesOf } from '#shared/aws/environment.ts';
import { LEASE_PREFIX } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { RATE_PREFIX } from '#shared/state/dynamodb/dynamodb-rate-limiter.ts';
import { CLUSTER_PREFIX, FLEET_KEY } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import {
  CLUSTER_INDEX,
  HISTORY_DAYS_TAG,
  RELEASE_TAG,
  TTL_ATTRIBUTE,
} from '#shared/state/dynamodb/table-definition.ts';
import { VERSION } from '#shared/version.ts';
import { type Grantee, grantWildcard } from './grantee.ts';

export interface StateProps {
  readonly tableName: string;
  /** Whether the table outlives the stack, and nobody but the stack's own deployment may delete it. */
  readonly retain: boolean;
  /** For how many days history and audit are kept. */
  readonly historyDays: number;
  /** Write units a second that it takes from one moment to the next; absent: what a table on demand has grown to. */
  readonly warmWriteUnitsPerSecond?: number;
}

type Conditions = Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>;

/**
 * What a condition on partition keys takes besides: `ForAllValues` is true of a request that names no key at all, as an
 * empty set has no member that is not as it should be (IAM User Guide, "Single-valued vs. multivalued context keys").
 */
const NAMES_KEYS = { Null: { 'dynamodb:LeadingKeys': 'false' } } as const;

/** The partitions that match one of the patterns, and no others. */
export const onlyKeys = (...patterns: readonly string[]): Conditions => ({
  ...NAMES_KEYS,
  'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': patterns },
});

const KEY_ATTRIBUTES = ['pk', 'sk', 'clusterKey', 'clusterSort'];
/** What is written of stops, holds and releases, and of each in the audit. */
const HOLDING_ATTRIBUTES = [
  ...KEY_ATTRIBUTES,
  ...['revision', 'stop', 'stoppedAt', 'holds', 'trips'],
  ...['cluster', 'who', 'at', 'kind', 'does', 'what', 'why', 'ttl'],
];
/** What is written of a policy beside, and of that in the audit. */
const POLICY_ATTRIBUTES = ['policy', 'before', 'after'];
const REGISTRATION_ATTRIBUTES = [...KEY_ATTRIBUTES, 'addedAt', 'access'];

/** The one table: timed evictions, leases, the registry of clusters, and what governs them. */
export class State extends Construct {
  readonly table: Table;
  readonly #tableName: string;

  constructor(
    scope: Construct,
    id: string,
    { tableName, retain, historyDays, warmWriteUnitsPerSecond }: StateProps,
  ) {
    super(scope, id);
    this.#tableName = tableName;
    const text = (name: string) => ({ name, type: AttributeType.STRING });
    // The index too: one that takes less throttles what is written to the table.
    const warm =
      warmWriteUnitsPerSecond === undefined
        ? {}
        : { warmThroughput: { writeUnitsPerSecond: warmWriteUnitsPerSecond } };
    this.table = new Table(this, 'Table', {
      tableName,
      partitionKey: text('pk'),
      sortKey: text('sk'),
      billingMode: BillingMode.PAY_PER_REQUEST,
      ...warm,
      timeToLiveAttribute: TTL_ATTRIBUTE,
      // What expired must be readable, and nothing else is of interest.
      stream: StreamViewType.OLD_IMAGE,
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      encryption: TableEncryption.DEFAULT,
      // A first deployment that fails takes its empty table back, which else would stand in the way of the next one.
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
      ...warm,
    });
  }

  /**
   * Lets a function write the partitions of nodes, and read them and what governs clusters. Transactions need the rights of
   * what they do (DynamoDB Developer Guide, "Using IAM with DynamoDB transactions").
   */
  bindPartitions(grantee: Grantee): void {
    const reads = ['GetItem', 'BatchGetItem', 'Query'];
    const writes = ['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem'];
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
   * Lets the relay keep leases and what the guards hold, of all clusters or of those of these names, write nothing else, and
   * read the registry, what governs clusters, and the partitions of nodes: what is tainted, what is overdue there, and what
   * was evicted lately. Who may write a cluster's lease speaks for it.
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

  /** Lets somebody know which release was deployed, and for how long what he writes into the audit is kept. */
  #bindTags(grantee: Grantee): void {
    this.#bind(grantee, ['DescribeTable', 'ListTagsOfResource'], [this.table.tableArn]);
  }

  /** Lets a process read the registry and what else is found by the index. */
  bindRegistry(grantee: Grantee): void {
    this.#bind(grantee, ['BatchGetItem'], [this.table.tableArn]);
    this.#bind(grantee, ['Query'], [`${this.table.tableArn}/index/${CLUSTER_INDEX}`]);
  }

  /** Lets somebody see everything: the table holds no secrets. */
  bindView(grantee: Grantee): void {
    this.bindRegistry(grantee);
    this.#bindTags(grantee);
    this.#bind(grantee, ['GetItem', 'Query'], [this.table.tableArn]);
  }

  /** Lets somebody stop, hold and release, and note it in the audit, but neither write policies nor register clusters. */
  bindHolding(grantee: Grantee): void {
    this.#bindRulings(grantee, HOLDING_ATTRIBUTES);
  }

  /** Lets somebody write all that governs clusters, and register them. */
  bindRuling(grantee: Grantee): void {
    this.#bindRulings(grantee, [...HOLDING_ATTRIBUTES, ...POLICY_ATTRIBUTES]);
    this.#bind(grantee, ['PutItem', 'DeleteItem'], [this.table.tableArn], {
      ...onlyKeys(`${CLUSTER_PREFIX}*`),
      'ForAllValues:StringEquals': { 'dynamodb:Attributes': REGISTRATION_ATTRIBUTES },
    });
  }

  /** Orders and entries of the audit are changed by attribute, and never put whole. */
  #bindRulings(grantee: Grantee, attributes: readonly string[]): void {
    this.#bindTags(grantee);
    this.#bind(grantee, ['UpdateItem'], [this.table.tableArn], {
      ...onlyKeys(`${CLUSTER_PREFIX}*`, `${LEASE_PREFIX}*`, FLEET_KEY),
      'ForAllValues:StringEquals': { 'dynamodb:Attributes': attributes },
    });
  }

  /** Lets a function be fed by the table's stream; returns its ARN. */
  bindStream(grantee: Grantee): string {
    const streamArn = this.table.tableStreamArn;
    if (streamArn === undefined) throw new Error('the table was made without a stream');
    const actions = ['DescribeStream', 'GetRecords', 'GetShardIterator'];
    Grant.addToPrincipal({
      grantee,
      actions: actions.map((action) => `dynamodb:${action}`),
      resourceArns: [streamArn],
    });
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
    Grant.addToPrincipal({
      grantee,
      actions: actions.map((action) => `dynamodb:${action}`),
      resourceArns,
      ...(conditions ? { conditions } : {}),
    });
  }
}

/** Nobody may do anything to the table in the clear. */
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
 * Nobody may delete the table but CloudFormation, as the role that `cdk deploy` gives it or as its caller. DynamoDB's own
 * deletion protection would keep a failed first deployment, too, from taking its table back.
 */
function deletedByDeploymentsOnly({ synthesizer }: Stack): PolicyStatement {
  if (!(synthesizer instanceof DefaultStackSynthesizer))
    throw new Error('cdk deploy would use a role that is not known here');
  return new PolicyStatement({
    sid: 'DeletedByDeploymentsOnly',
    effect: Effect.DENY,
    principals: [new AnyPrincipal()],
    actions: ['dynamodb:DeleteTable'],
    resources: ['*'],
    conditions: {
      ArnNotEquals: { 'aws:PrincipalArn': Fn.sub(synthesizer.cloudFormationExecutionRoleArn) },
      'ForAllValues:StringNotEquals': { 'aws:CalledVia': 'cloudformation.amazonaws.com' },
    },
  });
}
