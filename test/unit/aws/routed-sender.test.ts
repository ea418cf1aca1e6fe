import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { routedSender } from '#shared/aws/due-queues.ts';
import { recordingSender } from './recording-sender.ts';

const agentOf = async (cluster: string) => (cluster.startsWith('closed') ? `of-${cluster}` : undefined);

describe('routedSender', () => {
  test('sends each message to the queue of its cluster’s agent, and otherwise to our own queue', async () => {
    const own = recordingSender();
    const agents = new Map<string, ReturnType<typeof recordingSender>>();
    const ofAgent = (agent: string) => {
      const queue = agents.get(agent) ?? recordingSender();
      agents.set(agent, queue);
      return queue;
    };
    const messages = ['open', 'closed-1', undefined, 'closed-2', 'closed-1'].map((groupId, index) => ({
      body: `${index}`,
      ...(groupId === undefined ? {} : { groupId }),
    }));
    assert.deepEqual(await routedSender({ own, ofAgent }, agentOf).send(messages), []);
    const bodies = (queue = recordingSender()) => queue.calls.map((call) => call.map(({ body }) => body));
    assert.deepEqual(bodies(own), [['0', '2']]);
    assert.deepEqual(bodies(agents.get('of-closed-1')), [['1', '4']]);
    assert.deepEqual(bodies(agents.get('of-closed-2')), [['3']]);
  });

  test('reports failures by the places of their messages among all', async () => {
    const last = recordingSender((messages) => [
      { index: messages.length - 1, reason: 'full', permanent: false },
    ]);
    const sender = routedSender({ own: last, ofAgent: () => last }, agentOf);
    const failures = await sender.send(
      ['closed', 'open', 'open', 'closed'].map((groupId) => ({ body: 'x', groupId })),
    );
    assert.deepEqual(failures, [
      { index: 2, reason: 'full', permanent: false },
      { index: 3, reason: 'full', permanent: false },
    ]);
  });
});
