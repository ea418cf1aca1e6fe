import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PutEventsCommand, PutEventsCommandOutput } from '@aws-sdk/client-eventbridge';
import { EventBus } from '#shared/aws/event-bus.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

const NOW = Date.UTC(2026, 10, 22);
const gone = {
  cluster: clusterName('c1'),
  node: nodeName('n1'),
  namespace: 'shop',
  pod: 'web-0',
  uid: podUid('u1'),
  delta: '7-1',
};

type Answer = () => Promise<Partial<PutEventsCommandOutput>>;

/** Returns a bus with this answer to every call, and the requests that it received. */
function busThat(answer: Answer) {
  const log = recordingLog();
  const sent: PutEventsCommand['input'][] = [];
  const client = {
    send: async (command: PutEventsCommand) => {
      sent.push(command.input);
      return answer();
    },
  };
  const bus = new EventBus({ client: client as never, busName: 'ops', clock: { now: () => NOW }, log });
  return { bus, log, sent };
}

test('sends logged evictions in batches of ten when it is flushed, and still logs them', async () => {
  const { bus, log, sent } = busThat(async () => ({}));
  for (let count = 0; count < 25; count++) bus.log.info('pod.already-gone', gone);
  bus.log.info('cluster.removed', { cluster: gone.cluster });
  assert.deepEqual([sent.length, log.lines.length], [0, 26]);
  await bus.flush();
  assert.deepEqual(
    sent.map(({ Entries = [] }) => Entries.length),
    [10, 10, 5],
  );
  const { Detail, ...entry } = sent[0]?.Entries?.[0] ?? {};
  assert.deepEqual(entry, {
    EventBusName: 'ops',
    Source: 'taintward',
    DetailType: 'Taintward Eviction',
    Time: new Date(NOW),
  });
  assert.equal(JSON.parse(Detail ?? '').event, 'already-gone');
  await bus.flush();
  assert.equal(sent.length, 3);
});

test('logs the number of events that the bus rejected, and does not retry', async () => {
  const refusals: readonly (readonly [Answer, number])[] = [
    [
      async () => ({
        FailedEntryCount: 1,
        Entries: [{ EventId: '1' }, { ErrorMessage: 'no', ErrorCode: 'X' }],
      }),
      1,
    ],
    [async () => Promise.reject(new Error('no')), 2],
  ];
  for (const [answer, lost] of refusals) {
    const { bus, log } = busThat(answer);
    bus.log.info('pod.already-gone', gone);
    bus.log.info('pod.already-gone', gone);
    await bus.flush();
    const { event, fields } = log.lines.at(-1) ?? {};
    assert.deepEqual(
      [event, fields?.['notifications'], String(fields?.['error']).replace('Error: ', '')],
      ['notification.dropped', lost, 'no'],
    );
  }
});
