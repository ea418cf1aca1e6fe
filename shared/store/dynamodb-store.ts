import {
  ConditionalCheckFailedException,
  type DynamoDBClient,
  TransactionCanceledException,
  TransactionConflictException,
  TransactionInProgressException,
  type TransactWriteItem,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import pMap from 'p-map';
import {
  type ClusterName,
  type EpochMs,
  type NodeRef,
  nodeKey,
  type PodUid,
} from '#shared/eviction/identity.ts';
import type { EvictionRecord, Partition } from '#shared/eviction/records.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import { type Item, toAttribute } from './attribute-values.ts';
import { chunksOf } from './chunks.ts';
import { dynamoDbStoreError } from './dynamodb-error.ts';
import {
  DUE_SHARDS,
  dueKey,
  EVICTION_PREFIX,
  evictionItem,
  evictionItemKey,
  nodeAttributes,
  nodeItemKey,
  parseDueItem,
  parseEvictionItem,
  parseNodeItem,
  refOfItem,
  taintedKey,
  tombstoneAttributes,
} from './items.ts';
import { mergeSorted } from './merge-sorted.ts';
import { tombstoneTtl } from './retention.ts';
import type { Commit, Outcome, Scope, Store, TaintedNode, Upcoming } from './store.ts';
import { TableReader } from './table-reader.ts';
import { updateExpression } from './update-expression.ts';

/** Records in one TransactWriteItems: DynamoDB takes 100 actions, and one of them is the NODE item's. */
const RECORDS_PER_TRANSACTION = 99;
/** UpdateItem calls of one `settle` under way at once: a full node (110 pods) in seven round trips. */
const SETTLE_CONCURRENCY = 16;
/** How often a record that a transaction holds is tried again; together some 2 s. The SDK leaves this to us. */
const SETTLE_ATTEMPTS = 10;
const SETTLE_BACKOFF: Backoff = { firstMs: 50, longestMs: 400 };

/** The store on a DynamoDB table as `tableDefinition` describes it. */
export class DynamoDbStore implements Store {
  readonly #client: DynamoDBClient;
  readonly #tableName: string;
  readonly #reader: TableReader;

  constructor({ client, tableName }: { readonly client: DynamoDBClient; readonly tableName: string }) {
    this.#client = client;
    this.#tableName = tableName;
    this.#reader = new TableReader(client, tableName);
  }

  async load(ref: NodeRef, scope: Scope): Promise<Partition> {
    // NODE first: no read of several items is a snapshot, and records older than the revision they are
    // committed under would undo somebody's commit. Newer ones lose the race, as they should.
    const item = await this.#reader.get(nodeItemKey(ref));
    const node = item ? parseNodeItem(ref, item) : { revision: 0, node: undefined };
    const evictions = new Map<PodUid, EvictionRecord>();
    for await (const found of this.#evictionItems(ref, scope)) {
      const record = parseEvictionItem(found);
      evictions.set(record.uid, record);
    }
    return { ref, ...node, evictions };
  }

  #evictionItems(ref: NodeRef, scope: Scope): AsyncIterable<Item> {
    switch (scope.kind) {
      case 'all':
        return this.#reader.query(nodeKey(ref), EVICTION_PREFIX);
      case 'due':
        return this.#reader.query(nodeKey(ref), EVICTION_PREFIX, {
          FilterExpression: '#state = :scheduled AND #fireAt <= :now',
          ExpressionAttributeNames: { '#state': 'state', '#fireAt': 'fireAt' },
          ExpressionAttributeValues: {
            ':scheduled': toAttribute('scheduled'),
            ':now': toAttribute(scope.now),
          },
        });
      case 'pods':
        return this.#reader.batchGet([...new Set(scope.uids)].map((uid) => evictionItemKey(ref, uid)));
      default:
        return scope satisfies never;
    }
  }

  async commit(
    ref: NodeRef,
    revision: number,
    change: Commit,
    now: EpochMs,
  ): Promise<'committed' | 'conflict'> {
    const chunks = chunksOf(change.evictions, RECORDS_PER_TRANSACTION);
    const earlier = chunks.slice(0, -1);
    for (const [index, evictions] of earlier.entries()) {
      const part = { evictions, live: change.live };
      if (!(await this.#transact(ref, revision + index, part, now))) return 'conflict';
    }
    const rest = { ...change, evictions: chunks.at(-1) ?? [] };
    return (await this.#transact(ref, revision + earlier.length, rest, now)) ? 'committed' : 'conflict';
  }

  /** One transaction; false when somebody else was faster. */
  async #transact(ref: NodeRef, revision: number, change: Commit, now: EpochMs): Promise<boolean> {
    const writes = [
      this.#nodeWrite(ref, revision, change, now),
      ...change.evictions.map((record) => this.#evictionWrite(ref, record, now)),
    ];
    try {
      await this.#client.send(new TransactWriteItemsCommand({ TransactItems: writes }));
      return true;
    } catch (error) {
      if (lostRace(error)) return false;
      throw dynamoDbStoreError(error, this.#tableName);
    }
  }

  #nodeWrite(ref: NodeRef, revision: number, change: Commit, now: EpochMs): TransactWriteItem {
    const update = updateExpression({
      revision: revision + 1,
      ttl: change.live ? undefined : tombstoneTtl(now),
      ...(change.node ? nodeAttributes(ref, change.node) : {}),
    });
    const unchanged =
      revision === 0
        ? { ConditionExpression: 'attribute_not_exists(#revision)' }
        : {
            ConditionExpression: '#revision = :read',
            ExpressionAttributeValues: {
              ...update.ExpressionAttributeValues,
              ':read': toAttribute(revision),
            },
          };
    return { Update: { TableName: this.#tableName, Key: nodeItemKey(ref), ...update, ...unchanged } };
  }

  #evictionWrite(ref: NodeRef, record: EvictionRecord, now: EpochMs): TransactWriteItem {
    return {
      Put: {
        TableName: this.#tableName,
        Item: evictionItem(ref, record, now),
        // `settle` takes no lock, so the lock alone does not keep a tombstone from being overwritten.
        ConditionExpression: 'attribute_not_exists(pk) OR #state IN (:scheduled, :cancelled)',
        ExpressionAttributeNames: { '#state': 'state' },
        ExpressionAttributeValues: {
          ':scheduled': toAttribute('scheduled'),
          ':cancelled': toAttribute('cancelled'),
        },
      },
    };
  }

  async settle(ref: NodeRef, outcomes: readonly Outcome[], now: EpochMs): Promise<ReadonlySet<PodUid>> {
    const settled = new Set<PodUid>();
    const settle = async (outcome: Outcome) => {
      if (await this.#settleOne(ref, outcome, now)) settled.add(outcome.uid);
    };
    await pMap(outcomes, settle, { concurrency: SETTLE_CONCURRENCY });
    return settled;
  }

  /** Whether the record was still scheduled. */
  async #settleOne(ref: NodeRef, { uid, state }: Outcome, now: EpochMs): Promise<boolean> {
    const update = updateExpression({ state, ...tombstoneAttributes(now) });
    const command = new UpdateItemCommand({
      TableName: this.#tableName,
      Key: evictionItemKey(ref, uid),
      ...update,
      ConditionExpression: '#state = :scheduled',
      ExpressionAttributeValues: {
        ...update.ExpressionAttributeValues,
        ':scheduled': toAttribute('scheduled'),
      },
    });
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#client.send(command);
        return true;
      } catch (error) {
        if (error instanceof ConditionalCheckFailedException) return false;
        if (!(error instanceof TransactionConflictException) || attempt === SETTLE_ATTEMPTS) {
          throw dynamoDbStoreError(error, this.#tableName);
        }
        await pause(backoffMs(attempt, SETTLE_BACKOFF));
      }
    }
  }

  async *taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode> {
    for await (const page of this.#reader.indexPages(taintedKey(cluster))) {
      // The index lags behind and holds no content: what it names is read anew.
      for await (const item of this.#reader.batchGet(page.map((found) => nodeItemKey(refOfItem(found))))) {
        const ref = refOfItem(item);
        const { node } = parseNodeItem(ref, item);
        if (node && node.taints.length > 0) yield { node: ref.node, state: node };
      }
    }
  }

  async *upcoming(): AsyncIterable<Upcoming> {
    const shards = Array.from({ length: DUE_SHARDS }, (_, shard) => this.#dueIn(shard));
    let last: string | undefined;
    for await (const { sortKey, ...upcoming } of mergeSorted(shards, (a, b) =>
      a.sortKey < b.sortKey ? -1 : 1,
    )) {
      // Pods of one node that fall due together have one sort key, hence stand next to each other.
      if (sortKey !== last) yield upcoming;
      last = sortKey;
    }
  }

  async *#dueIn(shard: number): AsyncIterable<ReturnType<typeof parseDueItem>> {
    for await (const page of this.#reader.indexPages(dueKey(shard))) yield* page.map(parseDueItem);
  }
}

/** Whether a transaction failed because others write the same items: the revision or a record has changed, or will. */
function lostRace(error: unknown): boolean {
  if (error instanceof TransactionInProgressException) return true;
  if (!(error instanceof TransactionCanceledException)) return false;
  return (error.CancellationReasons ?? []).some(
    ({ Code }) => Code === 'ConditionalCheckFailed' || Code === 'TransactionConflict',
  );
}
