import type { Context } from 'aws-lambda';
import fc from 'fast-check';
import { createHandler as createDeltaHandler } from '#functions/deltas/handler.ts';
import { createHandler as createEvictHandler } from '#functions/evict/handler.ts';
import { encodeDelta, messageGroupId, parseDelta } from '#shared/aws/delta-message.ts';
import {
  encodeCanceled,
  encodeCountdowns,
  encodeDue,
  encodeRetry,
  parseDueMessage,
} from '#shared/aws/due-message.ts';
import { RejectedMessageError } from '#shared/aws/rejected-message.ts';
import { messageFault } from '#shared/aws/sqs-message.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { scriptedWorld } from '#test/unit/deltas/scripted-world.ts';
import { benchAfter } from '#test/unit/engine/evict/evict-bench.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, nodeDelta } from '#test/unit/eviction/builders.ts';
import { RELEASES } from '#test/unit/upgrade/releases.ts';
import type { ScriptedQueue } from '#test/world/scripted-queue.ts';
import { ScriptedStore } from '#test/world/scripted-store.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';
import { emptied } from './emptied.ts';
import { hostileJson, sameMeaning } from './hostile.ts';
import type { Kind, Outcome } from './kind.ts';
import { must, refusal, sentence } from './refusal.ts';

const CONTEXT = {} as Context;
const delta = nodeDelta(1);

/** A batch from Lambda: one message is hostile, and the messages before and after it are valid. */
interface Batch {
  readonly queue: 'deltas' | 'due';
  readonly body: string;
}

/**
 * Messages of all queues, through the handlers. An unreadable message becomes a dead letter that SQS would accept, with the
 * reason. No message is returned to the queue indefinitely, and the other messages of the batch are handled.
 */
export const deltas: Kind<Batch> = {
  name: 'deltas',
  open: async () => {
    const store = new ScriptedStore();
    const batchOf = (queue: Batch['queue'], samples: readonly object[]) =>
      hostileJson(samples).map((body) => ({ queue, body }));
    return {
      inputs: fc.oneof(
        {
          weight: 2,
          arbitrary: batchOf(
            'deltas',
            RELEASES.flatMap(({ written }) => Object.values(written.deltas)),
          ),
        },
        {
          weight: 1,
          arbitrary: batchOf(
            'due',
            RELEASES.flatMap(({ written }) => Object.values(written.due)),
          ),
        },
      ),
      feed: async ({ queue, body }) => (queue === 'deltas' ? feedDelta(body, store) : feedDue(body, store)),
      close: () => store.close(),
    };
  },
};

async function feedDelta(body: string, store: ScriptedStore): Promise<Outcome> {
  const world = scriptedWorld(emptied(store));
  const records = [body, encodeDelta(delta)].map((text, index) =>
    sqsRecord(text, { messageId: `m${index}`, groupId: groupOf(text) }),
  );
  const response = await createDeltaHandler(world)(sqsEvent(...records), CONTEXT);
  must(response?.batchItemFailures.length === 0, `is given back: ${reasonsIn(world)}`);
  const { scheduled } = await world.store.load(delta.ref, at(0));
  must(scheduled.size > 0 || names(body, delta.ref.cluster), 'keeps another message from being done');
  const outcome = parsed(() => {
    const delta = parseDelta(body);
    const again = parseDelta(encodeDelta(delta));
    must(sameMeaning(again, withoutEmptyValues(delta)), 'is another delta when it is written again');
    return delta.ref;
  });
  if (typeof outcome === 'object') {
    // The state that the message left in the store is readable.
    await world.store.load(outcome, at(0));
    for (const { body: due } of world.dueQueue.sent) parseDueMessage(due);
  }
  return settled(outcome, body, world.deadLetters);
}

/** Returns the group in which a relay sends the message; a message that no relay sends may be in any group. */
function groupOf(body: string): string {
  try {
    return messageGroupId(parseDelta(body).ref);
  } catch {
    return 'g0';
  }
}

/** An empty value of a taint counts as absent and is not written. */
const withoutEmptyValues = ({ taints, ...rest }: Delta): object => ({
  ...rest,
  taints: taints.map(({ value, ...taint }) => (value ? { ...taint, value } : taint)),
});

async function feedDue(body: string, store: ScriptedStore): Promise<Outcome> {
  const bench = await benchAfter([delta], [livePod()], emptied(store));
  const good = encodeDue({ ...delta.ref, at: at(60) });
  const records = [body, good].map((text, index) =>
    sqsRecord(text, { messageId: `m${index}`, groupId: 'prod' }),
  );
  const response = await createEvictHandler(bench)(sqsEvent(...records), CONTEXT);
  const outcome = parsed(() => {
    const due = parseDueMessage(body);
    must(sameMeaning(readAgain(due), due), 'is another message when it is written again');
    return due;
  });
  const later = typeof outcome === 'object' && outcome.kind === 'due' && outcome.at > at(60);
  const back = response?.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier).join();
  must(back === '' || (later && back === 'm0'), `is given back: ${reasonsIn(bench)}`);
  must(bench.cluster.deletions.length === 1, 'keeps another message from being done');
  return settled(outcome, body, bench.deadLetters);
}

type Due = ReturnType<typeof parseDueMessage>;

/** Returns the message after writing and reading it again. Long lists are split into several messages. */
function readAgain(due: Due): unknown {
  switch (due.kind) {
    case 'due':
      return parseDueMessage(encodeDue(due));
    case 'canceled':
      return joined(encodeCanceled(due));
    case 'countdowns':
      return joined(encodeCountdowns(due));
    case 'retry':
      return parseDueMessage(encodeRetry(due));
    default:
      return due satisfies never;
  }
}

function joined(bodies: readonly string[]): unknown {
  const all = bodies.map(parseDueMessage);
  return { ...all[0], pods: all.flatMap((each): readonly unknown[] => ('pods' in each ? each.pods : [])) };
}

function parsed<Message extends object>(read: () => Message): Message | 'refused' {
  try {
    return read();
  } catch (error) {
    return refusal(error, [RejectedMessageError]);
  }
}

function settled(outcome: object | 'refused', body: string, { sent }: ScriptedQueue): Outcome {
  if (outcome !== 'refused') {
    must(sent.length === 0, `is a dead letter, though it can be read: ${sent[0]?.attributes?.['reason']}`);
    return 'accepted';
  }
  const [letter, ...others] = sent;
  must(letter !== undefined && others.length === 0 && letter.body === body, 'is no dead letter as it came');
  sentence(letter.attributes?.['reason'] ?? '');
  // A queue delivers no message with an empty body or with characters that SQS rejects.
  const own = messageFault({ body });
  must(
    own !== undefined || messageFault(letter) === undefined,
    `SQS takes no such letter: ${messageFault(letter)}`,
  );
  return 'refused';
}

/** A hostile message may name the same cluster. */
const names = (body: string, cluster: string): boolean => body.includes(cluster);

const reasonsIn = ({ log }: { readonly log: ReturnType<typeof scriptedWorld>['log'] }): string =>
  log.lines
    .flatMap(({ fields }) => String(fields['error'] ?? []))
    .join(' | ')
    .slice(0, 1_000);
