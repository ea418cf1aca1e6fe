import { randomBytes } from 'node:crypto';
import { type ClusterName, type NodeRef, nodeKey, type PodUid } from '#shared/eviction/identity.ts';
import type { EvictionRecord, FinalRecord, Partition } from '#shared/eviction/records.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type Commit, ENDED_WINDOW_MS, partitionOf, type Store, type TaintedNode } from '../store.ts';
import { HISTORY_DAYS, nodeTtl } from '../stored.ts';
import type { Item, Update, Write } from './dynamodb-item.ts';
import { type DynamoDbTable, TRANSACTION_ACTIONS } from './dynamodb-table.ts';
import {
  changedItem,
  ENDED_END,
  endedItem,
  endedSince,
  type HistoryItemOf,
  isEnded,
  parseEndedItem,
} from './history-items.ts';
import {
  isScheduled,
  nodeAttributes,
  nodeItemKey,
  parseNodeItem,
  parseScheduledItem,
  partitionsOf,
  refOfItem,
  scheduledItem,
  scheduledKey,
  taintedKeys,
} from './items.ts';

const CHUNK_ACTIONS = TRANSACTION_ACTIONS - 1;
/** Maximum of pods in an item of history: one transaction deletes or writes their records. */
const CHUNK_PODS = CHUNK_ACTIONS - 1;
/**
 * Maximum of JSON bytes in an item of history: DynamoDB allows 400 KB, and the stored form is shorter than its JSON.
 */
const HISTORY_ITEM_BYTES = 300_000;

export class DynamoDbStore implements Store {
  readonly #table: DynamoDbTable;
  readonly #historyDays: number;

  constructor(table: DynamoDbTable, { historyDays = HISTORY_DAYS }: { readonly historyDays?: number } = {}) {
    this.#table = table;
    this.#historyDays = historyDays;
  }

  async load(ref: NodeRef, now: EpochMs, only?: readonly PodUid[]): Promise<Partition> {
    // Read NODE first: a read of several items is not a snapshot. Records older than the revision they are committed
    // under would undo another commit. Newer records lose the race, as they should.
    const item = await this.#table.get(nodeItemKey(ref));
    const node = item ? parseNodeItem(ref, item) : { revision: 0, node: undefined };
    const since = endedSince(now - ENDED_WINDOW_MS);
    const items = only
      ? await this.#itemsOf(ref, since, only)
      : await Array.fromAsync(this.#table.query(nodeKey(ref), since));
    const uids = only && new Set(only);
    return partitionOf(
      { ref, ...node },
      items.filter(isScheduled).map(parseScheduledItem),
      items.filter(isEnded).flatMap((each) => parseEndedItem(each, uids)),
    );
  }

  async #itemsOf(ref: NodeRef, since: string, uids: readonly PodUid[]): Promise<readonly Item[]> {
    if (uids.length === 0) return [];
    const [records, ended] = await Promise.all([
      Array.fromAsync(this.#table.batchGet(uids.map((uid) => scheduledKey(ref, uid)))),
      Array.fromAsync(this.#table.query(nodeKey(ref), since, ENDED_END)),
    ]);
    return [...records, ...ended];
  }

  async commit(
    ref: NodeRef,
    revision: number,
    change: Commit,
    now: EpochMs,
  ): Promise<'committed' | 'conflict'> {
    const { schedule, end, noted = [] } = change;
    const isNoted = new Map(noted.map((note) => [note.uid, note]));
    const put = (record: EvictionRecord): Write => ({ put: scheduledItem(ref, record, now) });
    const records = new Map(schedule.map((record) => [record.uid, record]));
    const chunks = inChunks([
      // Notes are written in one transaction with their records. After an interrupted commit, another commit
      // completes it with its own notes.
      ...partsOf(noted, CHUNK_PODS).map((notes) => [
        { put: changedItem(this.#historyItem(ref, now), notes) },
        ...notes.flatMap(({ uid }) => records.get(uid) ?? []).map(put),
      ]),
      ...schedule.filter(({ uid }) => !isNoted.has(uid)).map((record) => [put(record)]),
      ...partsOf(end, CHUNK_PODS).map((pods) => [
        { put: endedItem(this.#historyItem(ref, now), pods) },
        ...pods.map(({ uid }) => ({ delete: scheduledKey(ref, uid) })),
      ]),
    ]);
    for (const [index, writes] of chunks.entries()) {
      const isLast = index === chunks.length - 1;
      const update: Update = {
        key: nodeItemKey(ref),
        set: {
          revision: revision + index + 1,
          ttl: change.live ? undefined : nodeTtl(now),
          ...(isLast && change.node ? nodeAttributes(ref, change.node) : {}),
        },
        expected: { revision: revision + index || undefined },
      };
      if (!(await this.#table.transact([{ update }, ...writes]))) return 'conflict';
    }
    return 'committed';
  }

  async end(ref: NodeRef, pods: readonly FinalRecord[], now: EpochMs): Promise<void> {
    if (pods.length === 0) return;
    // No transaction, which would cost twice as much. A load from here on finds the records hidden. A commit of an
    // earlier load can succeed only before the revision grows, and its records are then deleted too.
    for (const part of partsOf(pods)) {
      await this.#table.add(endedItem(this.#historyItem(ref, now), part));
    }
    await this.#table.update({ key: nodeItemKey(ref), add: { revision: 1 } });
    await this.#table.batchDelete(pods.map(({ uid }) => scheduledKey(ref, uid)));
  }

  #historyItem(ref: NodeRef, at: EpochMs): HistoryItemOf {
    return { ref, at, pass: passId(), days: this.#historyDays };
  }

  async *taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode> {
    for (const key of taintedKeys(cluster)) {
      for await (const item of this.#table.indexed(key, partitionsOf(cluster))) {
        const ref = refOfItem(item);
        const { node } = parseNodeItem(ref, item);
        if (node && node.taints.length > 0) yield { node: ref.node, state: node };
      }
    }
  }
}

/** Distinguishes changes to one node's records in the same millisecond. */
const passId = (): string => randomBytes(6).toString('base64url');

function partsOf<Pod>(pods: readonly Pod[], most = Number.POSITIVE_INFINITY): readonly (readonly Pod[])[] {
  const parts: Pod[][] = [];
  let bytes = 0;
  for (const pod of pods) {
    const size = Buffer.byteLength(JSON.stringify(pod));
    const part = parts.at(-1);
    if (part && part.length < most && bytes + size <= HISTORY_ITEM_BYTES) {
      part.push(pod);
      bytes += size;
    } else {
      parts.push([pod]);
      bytes = size;
    }
  }
  return parts;
}

/** At least one transaction, in order. The writes of a group stay together. */
function inChunks(groups: readonly (readonly Write[])[]): readonly (readonly Write[])[] {
  const chunks: Write[][] = [[]];
  for (const group of groups) {
    const chunk = chunks.at(-1);
    if (chunk && chunk.length + group.length <= CHUNK_ACTIONS) chunk.push(...group);
    else chunks.push([...group]);
  }
  return chunks;
}
