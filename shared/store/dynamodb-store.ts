import { randomBytes } from 'node:crypto';
import {
  type ClusterName,
  type EpochMs,
  type NodeRef,
  nodeKey,
  type PodUid,
} from '#shared/eviction/identity.ts';
import type { Ending, Partition } from '#shared/eviction/records.ts';
import {
  type DynamoDbTable,
  type Item,
  TRANSACTION_ACTIONS,
  type Update,
  type Write,
} from './dynamodb-table.ts';
import {
  ENDED_END,
  endedItem,
  endedSince,
  isEnded,
  isScheduled,
  nodeAttributes,
  nodeItemKey,
  parseEndedItem,
  parseNodeItem,
  parseScheduledItem,
  refOfItem,
  scheduledItem,
  scheduledKey,
  taintedKeys,
} from './items.ts';
import { type Commit, ENDED_WINDOW_MS, partitionOf, type Store, type TaintedNode } from './store.ts';
import { endedTtl } from './stored.ts';

/** Actions of a transaction beside the NODE item's. */
const CHUNK_ACTIONS = TRANSACTION_ACTIONS - 1;
/** An ENDED item holds no more pods than its transaction can delete. */
const CHUNK_PODS = CHUNK_ACTIONS - 1;
/** Nor more JSON than this, which is longer than what is stored of it: an item holds 400 KB at most. */
const ENDED_ITEM_BYTES = 300_000;

/** The store on DynamoDB. */
export class DynamoDbStore implements Store {
  readonly #table: DynamoDbTable;

  constructor(table: DynamoDbTable) {
    this.#table = table;
  }

  async load(ref: NodeRef, now: EpochMs, only?: readonly PodUid[]): Promise<Partition> {
    // NODE first: no read of several items is a snapshot, and records older than the revision they are
    // committed under would undo somebody's commit. Newer ones lose the race, as they should.
    const item = await this.#table.get(nodeItemKey(ref));
    const node = item ? parseNodeItem(ref, item) : { revision: 0, node: undefined };
    const since = endedSince(now - ENDED_WINDOW_MS);
    const items = only
      ? await this.#itemsOf(ref, since, only)
      : await Array.fromAsync(this.#table.query(nodeKey(ref), since));
    const asked = only && new Set(only);
    return partitionOf(
      { ref, ...node },
      items.filter(isScheduled).map(parseScheduledItem),
      items.filter(isEnded).flatMap((each) => parseEndedItem(each, asked)),
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
    const chunks = inChunks([
      ...change.schedule.map((record) => [{ put: scheduledItem(ref, record, now) }]),
      ...partsOf(change.end, CHUNK_PODS).map((pods) => [
        { put: endedItem(ref, pods, now, passId()) },
        ...pods.map(({ uid }) => ({ delete: scheduledKey(ref, uid) })),
      ]),
    ]);
    for (const [index, writes] of chunks.entries()) {
      const isLast = index === chunks.length - 1;
      const update: Update = {
        key: nodeItemKey(ref),
        set: {
          revision: revision + index + 1,
          ttl: change.live ? undefined : endedTtl(now),
          ...(isLast && change.node ? nodeAttributes(ref, change.node) : {}),
        },
        expected: { revision: revision + index || undefined },
      };
      if (!(await this.#table.transact([{ update }, ...writes]))) return 'conflict';
    }
    return 'committed';
  }

  async end(ref: NodeRef, pods: readonly Ending[], now: EpochMs): Promise<void> {
    if (pods.length === 0) return;
    // No transaction, which would cost twice as much: a load from here on finds the records hidden, a commit of what
    // was loaded before is written before the revision grows, and then deleted with them, or never.
    for (const part of partsOf(pods)) await this.#table.add(endedItem(ref, part, now, passId()));
    await this.#table.update({ key: nodeItemKey(ref), add: { revision: 1 } });
    await this.#table.batchDelete(pods.map(({ uid }) => scheduledKey(ref, uid)));
  }

  async *taintedNodes(cluster: ClusterName): AsyncIterable<TaintedNode> {
    for (const key of taintedKeys(cluster)) {
      for await (const item of this.#table.indexed(key)) {
        const ref = refOfItem(item);
        const { node } = parseNodeItem(ref, item);
        if (node && node.taints.length > 0) yield { node: ref.node, state: node };
      }
    }
  }
}

/** Tells the passes apart that end records of one node in one millisecond. */
const passId = (): string => randomBytes(6).toString('base64url');

/** The pods of each ENDED item, in order; none for no pods. */
function partsOf(pods: readonly Ending[], most = Number.POSITIVE_INFINITY): readonly (readonly Ending[])[] {
  const parts: Ending[][] = [];
  let bytes = 0;
  for (const pod of pods) {
    const size = Buffer.byteLength(JSON.stringify(pod));
    const part = parts.at(-1);
    if (part && part.length < most && bytes + size <= ENDED_ITEM_BYTES) {
      part.push(pod);
      bytes += size;
    } else {
      parts.push([pod]);
      bytes = size;
    }
  }
  return parts;
}

/** The writes of each transaction, in order, at least one; what stands together stays together. */
function inChunks(groups: readonly (readonly Write[])[]): readonly (readonly Write[])[] {
  const chunks: Write[][] = [[]];
  for (const group of groups) {
    const chunk = chunks.at(-1);
    if (chunk && chunk.length + group.length <= CHUNK_ACTIONS) chunk.push(...group);
    else chunks.push([...group]);
  }
  return chunks;
}
