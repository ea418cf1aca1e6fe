import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pMap from 'p-map';
import { encodeDue } from '#shared/aws/due-message.ts';
import { CONDITIONS, type ConditionType, type Issue } from '#shared/conditions/conditions.ts';
import type { Finding } from '#shared/operations/look/finding.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { Agent } from './rig/agent.ts';
import { CommandError } from './rig/command.ts';
import { deployed } from './rig/deployed-stage.ts';
import type { RelayProcess } from './rig/relay-process.ts';
import { refOf } from './rig/stored-state.ts';

/*
 * Conditions that only AWS has, each brought about by a process, a queue, the table, or the network: `status`, `doctor`,
 * and, where it concerns the relay itself, its `/readyz` show the same, and show nothing once it is over.
 */

const WITHIN_MS = 60_000;
/** Two processes read all surfaces, and begin no next reading at once: other suites run beside this one. */
const BETWEEN_READS_MS = 500;

async function read<T>(command: string): Promise<{ readonly json: T; readonly code: unknown }> {
  try {
    const { stdout } = await deployed().cli(command, '-o', 'json');
    return { json: JSON.parse(stdout), code: 0 };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { json: JSON.parse(error.stdout), code: error.code };
  }
}

/** Waits until `/readyz` of a relay or an agent shows a condition of a cluster, or does not. */
const probes = (relay: RelayProcess, cluster: string, type: ConditionType, isShown: boolean) =>
  until(
    `/readyz shows ${isShown ? '' : 'no '}${type}`,
    async () => (await relay.conditions(cluster)).includes(type) === isShown,
    WITHIN_MS,
  );

/** Waits until both commands show a condition, or do not. */
const shows = (type: ConditionType, isShown: boolean): Promise<unknown> =>
  until(
    `all surfaces show ${isShown ? '' : 'no '}${type}`,
    async () => {
      const [status, doctor] = await Promise.all([
        read<{ readonly issues: readonly Issue[] }>('status'),
        read<readonly Finding[]>('doctor'),
      ]);
      const issues = status.json.issues.filter((issue) => issue.type === type);
      assert.ok(issues.every(({ severity }) => severity === CONDITIONS[type].severity));
      const found = doctor.json.filter(
        ({ verdict, check, message }) =>
          verdict === 'bad' &&
          check === CONDITIONS[type].check &&
          issues.some((issue) => issue.message === message),
      );
      const isAgreed =
        issues.length > 0 === isShown &&
        found.length === issues.length &&
        (!isShown || (status.code === 2 && doctor.code === 2));
      if (!isAgreed) await delay(BETWEEN_READS_MS);
      return isAgreed;
    },
    WITHIN_MS,
  );

test('a killed relay: the lease expires, until another one holds it', async () => {
  const [relay = assert.fail('no relay')] = await deployed().withRelays(1);
  await deployed().killRelay(relay);
  await shows('lease-expired', true);
  await deployed().withRelays(1);
  await shows('lease-expired', false);
});

test('a message that no function can read: a dead letter, until its queue is purged', async () => {
  const { queues } = deployed();
  await queues.nodeDeltas.send('{}', { group: 'conditions', id: 'conditions' });
  await shows('dead-letters', true);
  await queues.nodeDeltasDead.purge();
  await shows('dead-letters', false);
});

test('a queue that does not answer: deltas are not sent, until it does', async () => {
  const { alpha } = deployed();
  const [relay = assert.fail('no relay')] = await deployed().withRelays(1);
  const node = await alpha.cluster.addNode('unsent');
  const held = relay.tap.hold(({ service, operation }) => service === 'sqs' && operation.startsWith('Send'));
  await alpha.cluster.taint(node, { key: 'x' });
  await Promise.all([shows('queue-failing', true), probes(relay, 'alpha', 'queue-failing', true)]);
  held.release();
  await Promise.all([shows('queue-failing', false), probes(relay, 'alpha', 'queue-failing', false)]);
});

test('a table that does not answer: the relay cannot renew its lease, and sends nothing until it does', async () => {
  const { alpha } = deployed();
  const [relay = assert.fail('no relay')] = await deployed().withRelays(1);
  const node = await alpha.cluster.addNode('silent');
  const held = relay.tap.hold(({ service }) => service === 'dynamodb');
  await Promise.all([probes(relay, 'alpha', 'lease-unavailable', true), shows('lease-expired', true)]);
  const expiredAt = Date.now();
  await alpha.cluster.taint(node, { key: 'x' });
  const sends = () => relay.tap.since(expiredAt).filter(({ service }) => service === 'sqs');
  await until('the relay tries to renew', () =>
    relay.tap.since(expiredAt).some(({ service }) => service === 'dynamodb'),
  );
  assert.deepEqual(sends(), []);
  held.release();
  await Promise.all([probes(relay, 'alpha', 'lease-unavailable', false), shows('lease-expired', false)]);
  await until('the relay sends what it saw meanwhile', () => sends().length > 0);
});

test('a queue of due messages that does not answer: an agent receives nothing, until it does', async (t) => {
  const { beta } = deployed();
  const agent = await Agent.open('edge-2', deployed(), beta);
  t.after(async () => {
    await agent.close();
    await deployed().served();
  });
  await agent.takeOver();
  const started = await agent.start();
  const held = started.tap.hold(({ operation }) => operation === 'ReceiveMessage');
  await Promise.all([shows('queue-unavailable', true), probes(started, 'beta', 'queue-unavailable', true)]);
  held.release();
  await Promise.all([shows('queue-unavailable', false), probes(started, 'beta', 'queue-unavailable', false)]);
});

test('an item that no release wrote: the state of its cluster is unreadable, until it is gone', async () => {
  const { alpha, state } = deployed();
  await deployed().withRelays(1);
  const node = await alpha.cluster.addNode('unreadable');
  const pod = await alpha.cluster.addPod(node, 'unreadable', {
    tolerations: [tolerates('x', 3_600)],
  });
  await alpha.cluster.taint(node, { key: 'x' });
  await state.scheduled('alpha', pod);
  await state.spoilNode('alpha', node);
  await shows('unreadable', true);
  await state.forgetNode('alpha', node);
  await shows('unreadable', false);
});

test('a function that does not receive: a backlog, until it does', async () => {
  const { queues, raw } = deployed();
  const { evictionsDue } = queues;
  await raw.setReceiving('taintward-evict', false);
  const due = encodeDue({ ...refOf('alpha', 'never-existed'), at: Date.now() });
  await pMap(Array.from({ length: 1_001 }), () => evictionsDue.send(due), { concurrency: 20 });
  await shows('queue-backlog', true);
  await evictionsDue.purge();
  await raw.setReceiving('taintward-evict', true);
  await shows('queue-backlog', false);
});
