import { parseDelta } from '#shared/aws/delta-message.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/state/sender.ts';

/** A queue that does as told with each call; without orders it takes everything. */
export class OrderedQueue implements QueueSender {
  readonly calls: (readonly OutgoingMessage[])[] = [];
  readonly taken: Delta[] = [];
  onSend: (messages: readonly OutgoingMessage[]) => readonly SendFailure[] | Promise<readonly SendFailure[]> =
    () => [];

  async send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]> {
    this.calls.push(messages);
    const failures = await this.onSend(messages);
    const failed = new Set(failures.map(({ index }) => index));
    this.taken.push(...messages.filter((_, index) => !failed.has(index)).map(({ body }) => parseDelta(body)));
    return failures;
  }

  /** What was taken, in short: the object and the sequence number of what was told of it. */
  get told(): readonly string[] {
    return this.taken.map((delta) => {
      const object =
        delta.kind === 'node' ? delta.ref.node : delta.kind === 'pod' ? delta.pod.uid : delta.uid;
      return `${object}@${delta.version.sequence}`;
    });
  }
}
