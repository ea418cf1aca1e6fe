import { parseDelta } from '#shared/aws/delta-message.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/state/sender.ts';

/** A queue with a scripted result for each call. By default, it accepts every message. */
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

  /** The accepted deltas in short form: object and sequence number. */
  get accepted(): readonly string[] {
    return this.taken.map((delta) => {
      const object =
        delta.kind === 'node' ? delta.ref.node : delta.kind === 'pod' ? delta.pod.uid : delta.uid;
      return `${object}@${delta.version.sequence}`;
    });
  }
}
