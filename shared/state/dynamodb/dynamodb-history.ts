import { randomBytes } from 'node:crypto';
import pMap from 'p-map';
import { type ClusterName, type NodeName, type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import {
  entriesOf,
  type GonePod,
  type History,
  type HistoryEntry,
  type HistoryItem,
  type HistoryQuery,
  nodesWithEvictions,
  type ScheduledEviction,
} from '../history.ts';
import type { Item } from './dynamodb-item.ts';
import { LEASE_PREFIX } from './dynamodb-leases.ts';
import type { DynamoDbTable } from './dynamodb-table.ts';
import {
  CHANGED_END,
  changedSince,
  ENDED_END,
  endedSince,
  GONE_END,
  goneAttributes,
  goneSince,
  historyKeys,
  historySince,
  isEnded,
  momentOfHistory,
  parseChangedItem,
  parseEndedItem,
  parseGoneItem,
} from './history-items.ts';
import {
  parseScheduledItem,
  partitionsOf,
  refOfItem,
  SCHEDULED_END,
  SCHEDULED_PREFIX,
  taintedKeys,
} from './items.ts';
import { historyDaysOf } from './table-definition.ts';

/** Pods of one `GONE` item, which holds 400 KB at most. */
const GONE_PODS = 5_000;
const PARALLEL_NODES = 8;

/**
 * A node's history is read from its partition, a cluster's by the index, which lags briefly, plus all tainted nodes for
 * scheduled evictions.
 */
export class DynamoDbHistory implements History {
  readonly #table: DynamoDbTable;
  readonly #historyDays: () => Promise<number>;

  constructor(table: DynamoDbTable) {
    this.#table = table;
    this.#historyDays = historyDaysOf(table);
  }

  entries(query: HistoryQuery): AsyncIterable<HistoryEntry> {
    const { cluster, node, from } = query;
    const table = this.#table;
    if (node !== undefined) {
      const ref = { cluster, node };
      const items = newestFirst([
        table.query(nodeKey(ref), changedSince(from), CHANGED_END, { backward: true }),
        table.query(nodeKey(ref), endedSince(from), ENDED_END, { backward: true }),
      ]);
      return entriesOf({ scheduled: this.#scheduledOn([ref]), items, gone: this.#gone(query) }, query);
    }
    const items = this.#itemsOf(cluster, from);
    return entriesOf({ scheduled: this.#scheduledIn(cluster), items, gone: this.#gone(query) }, query);
  }

  nodesEvictedFrom(cluster: ClusterName, from: EpochMs): Promise<ReadonlySet<NodeName>> {
    return nodesWithEvictions(this.#itemsOf(cluster, from));
  }

  #itemsOf(cluster: ClusterName, from: EpochMs): AsyncIterable<HistoryItem> {
    return newestFirst(
      historyKeys(cluster).map((key) => this.#table.indexed(key, partitionsOf(cluster), historySince(from))),
    );
  }

  /** Writes by attribute, as a relay does everywhere. */
  async noteGone(cluster: ClusterName, pods: readonly GonePod[]): Promise<void> {
    const inOrder = pods.toSorted((a, b) => a.at - b.at);
    for (let from = 0; from < inOrder.length; from += GONE_PODS) {
      const some = inOrder.slice(from, from + GONE_PODS);
      const last = some.at(-1)?.at ?? 0;
      const sk = `${goneSince(last)}#${randomBytes(6).toString('base64url')}`;
      const set = goneAttributes(last, some, await this.#historyDays());
      await this.#table.update({ key: { pk: goneKey(cluster), sk }, set });
    }
  }

  async *#gone({ cluster, from }: HistoryQuery): AsyncIterable<GonePod> {
    const items = this.#table.query(goneKey(cluster), goneSince(from), GONE_END);
    for await (const item of items) yield* parseGoneItem(item);
  }

  async *#scheduledIn(cluster: ClusterName): AsyncIterable<ScheduledEviction> {
    const refs = await pMap(taintedKeys(cluster), async (key) =>
      Array.fromAsync(this.#table.indexed(key, partitionsOf(cluster)), refOfItem),
    );
    yield* this.#scheduledOn(refs.flat());
  }

  async *#scheduledOn(refs: readonly NodeRef[]): AsyncIterable<ScheduledEviction> {
    const found = await pMap(
      refs,
      async (ref) =>
        Array.fromAsync(this.#table.query(nodeKey(ref), SCHEDULED_PREFIX, SCHEDULED_END), (item) => ({
          ref,
          record: parseScheduledItem(item),
        })),
      { concurrency: PARALLEL_NODES },
    );
    yield* found.flat();
  }
}

const goneKey = (cluster: ClusterName): string => `${LEASE_PREFIX}${cluster}`;

function readItem(item: Item): HistoryItem {
  const [ref, at] = [refOfItem(item), momentOfHistory(item)];
  return isEnded(item)
    ? { ref, at, noted: [], ended: parseEndedItem(item) }
    : { ref, at, noted: parseChangedItem(item), ended: [] };
}

async function* newestFirst(sources: readonly AsyncIterable<Item>[]): AsyncIterable<HistoryItem> {
  const iterators = sources.map((source) => source[Symbol.asyncIterator]());
  const nextOf = async (iterator: AsyncIterator<Item>) => {
    const { done, value } = await iterator.next();
    return done ? [] : [{ iterator, item: readItem(value) }];
  };
  let heads = (await Promise.all(iterators.map(nextOf))).flat();
  while (heads.length > 0) {
    const newest = heads.reduce((best, head) => (head.item.at > best.item.at ? head : best));
    yield newest.item;
    const next = await nextOf(newest.iterator);
    heads = heads.flatMap((head) => (head === newest ? next : [head]));
  }
}
