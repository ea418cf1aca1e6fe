import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import { Registry } from 'prom-client';
import { AwsClients } from '#shared/access/aws-clients.ts';
import { DeltaSender } from '#shared/aws/relay/delta-sender.ts';
import { Relay } from '#shared/engine/watch/relay.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import type { OutgoingMessage, QueueSender, SendFailure } from '#shared/state/sender.ts';
import { SqliteHistory } from '#shared/state/sqlite/sqlite-history.ts';
import { sqliteLeases } from '#shared/state/sqlite/sqlite-state.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { jsonLog } from '#shared/telemetry/log.ts';
import { systemClock } from '#shared/time/clock.ts';
import { PROVEN } from '#test/world/proven.ts';
import { PushedRules } from '#test/world/pushed-rules.ts';
import { ScriptedGuardStore } from '#test/world/scripted-guard-store.ts';
import type { RelayAnswer, RelayQuestion, RelaySetting, SentDelta } from './relay-questions.ts';

/*
 * The relay as it is deployed, with two differences: leases are in a file, and queues accept and count everything. It
 * answers questions of the process that started it.
 */

const STATE_POLL_MS = 20;

/** Keeps sent messages with their times, unparsed until they are requested. */
class CountingQueue implements QueueSender {
  sent = 0;
  recording = true;
  readonly #kept: { readonly at: number; readonly body: string }[] = [];

  async send(messages: readonly OutgoingMessage[]): Promise<readonly SendFailure[]> {
    const at = Date.now();
    this.sent += messages.length;
    if (this.recording) for (const { body } of messages) this.#kept.push({ at, body });
    return [];
  }

  take(): readonly SentDelta[] {
    return this.#kept.splice(0).map(({ at, body }) => {
      const { kind, cluster, node, taints, pods = [], others = [] } = JSON.parse(body);
      return { at, kind, cluster, node, taints: taints.length, pods: pods.length + others.length };
    });
  }
}

const setting: RelaySetting = JSON.parse(process.argv[2] ?? '{}');
const nodeDeltas = new CountingQueue();
const podDeltas = new CountingQueue();
const clock = systemClock;
const log = jsonLog(setting.logs ? process.stdout : { write() {} });
const metrics = relayMetrics(new Registry());
const store = new SqliteStore({ path: setting.leases });
const relay = new Relay({
  prover: PROVEN,
  leases: sqliteLeases(store.database),
  history: new SqliteHistory({ database: store.database }),
  store,
  outbox: new DeltaSender({ nodeDeltas, podDeltas, clock, log, metrics }),
  clock,
  log,
  metrics,
  holder: `bench/${process.pid}`,
  rules: new PushedRules(),
  rulesStore: new ScriptedGuardStore(),
  nodeBudget: Number.POSITIVE_INFINITY,
});

/** Further objects of a deployed relay, which are not called but need memory. */
const carried = [
  new DynamoDBClient({ region: 'eu-west-1' }),
  new SQSClient({ region: 'eu-west-1' }),
  new AwsClients(),
];

for (const { name, url, certificate } of setting.clusters) {
  const server = new URL(url);
  const requestOptions = async () => ({
    server,
    headers: { Authorization: 'Bearer bench' },
    ca: certificate,
  });
  relay.add(clusterName(name), new RestApi({ host: server.host, requestOptions }));
}

/** The time at which each cluster was first seen to be followed (epoch ms). */
const liveSince: Record<string, number> = {};
const polling = setInterval(() => {
  for (const [name, state] of relay.states()) {
    if (state.kind === 'live') liveSince[name] ??= Date.now();
  }
  if (Object.keys(liveSince).length === setting.clusters.length) clearInterval(polling);
}, STATE_POLL_MS);

function answer(question: RelayQuestion): RelayAnswer[RelayQuestion] {
  switch (question) {
    case 'live':
      return liveSince;
    case 'deltas':
      return [...nodeDeltas.take(), ...podDeltas.take()];
    case 'record-no-more':
      nodeDeltas.recording = false;
      podDeltas.recording = false;
      return null;
    case 'memory': {
      const { heapUsed } = process.memoryUsage();
      return { heapMb: heapUsed / 2 ** 20, sent: nodeDeltas.sent + podDeltas.sent, carried: carried.length };
    }
    default:
      return question satisfies never;
  }
}

process.on('message', ({ id, question }: { readonly id: number; readonly question: RelayQuestion }) =>
  process.send?.({ id, answer: answer(question) }),
);
process.once('disconnect', () => process.exit(0));
