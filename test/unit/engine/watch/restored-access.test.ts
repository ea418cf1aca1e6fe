import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { connector } from '#shared/access/connect.ts';
import { localContextConnection } from '#shared/access/local-context-connection.ts';
import { DeltaSender } from '#shared/aws/relay/delta-sender.ts';
import { RegistryFollower } from '#shared/aws/relay/follow-registry.ts';
import { Relay } from '#shared/engine/watch/relay.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { Access, RegisteredCluster } from '#shared/state/registry.ts';
import { systemClock as clock } from '#shared/time/clock.ts';
import { startSimulatedCluster } from '#simulator/cluster.ts';
import { eventually } from '#test/contracts/eventually.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { PROVEN } from '#test/world/proven.ts';
import { PushedRules } from '#test/world/pushed-rules.ts';
import { ScriptedGuardStore } from '#test/world/scripted-guard-store.ts';
import { scriptedAws } from '../../access/scripted-aws.ts';
import { OrderedQueue } from '../../aws/relay/ordered-queue.ts';
import { inSqlite } from './relay-world.ts';

const SECRET_ARN = 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:taintward/later-AbCdEf';
const NOT_FOUND = { error: 'ResourceNotFoundException', message: 'no such thing' } as const;

const registered = (name: string, access: Access): RegisteredCluster => ({
  name: clusterName(name),
  access,
  addedAt: 0,
});

test('a missing secret or EKS cluster affects no other cluster, and the relay continues once it exists', async (t) => {
  const closing = new AsyncDisposableStack();
  t.after(() => closing.disposeAsync());
  const dir = mkdtempSync(join(tmpdir(), 'restored-access-'));
  closing.defer(() => rmSync(dir, { recursive: true }));
  const { kubeconfig, context, close } = await startSimulatedCluster({ clock, dir });
  closing.defer(close);
  let secret: string | undefined;
  const { aws } = await scriptedAws(t, {
    DescribeCluster: NOT_FOUND,
    GetSecretValue: () => (secret === undefined ? NOT_FOUND : { result: { SecretString: secret } }),
  });

  const [log, metrics] = [recordingLog(), relayMetrics(new Registry())];
  const queues = { nodeDeltas: new OrderedQueue(), podDeltas: new OrderedQueue() };
  const outbox = new DeltaSender({ ...queues, clock, log, metrics });
  const relay = new Relay({
    ...inSqlite(),
    outbox,
    clock,
    log,
    metrics,
    holder: 'r1',
    prover: PROVEN,
    rules: new PushedRules(),
    rulesStore: new ScriptedGuardStore(),
    nodeBudget: 1000,
  });
  closing.defer(() => relay.stop());
  const clusters = [
    registered('gone', { kind: 'eks', clusterName: 'gone', region: 'eu-west-1' }),
    registered('later', { kind: 'kubeconfig-secret', secretArn: SECRET_ARN }),
    registered('sound', { kind: 'local-context', kubeconfig, context }),
  ];
  const stopping = new AbortController();
  const follower = new RegistryFollower({
    installation: undefined,
    registry: { list: async () => ({ clusters, strays: [] }) },
    follows: () => true,
    connect: connector({ aws, clock, localContext: localContextConnection }),
    relay,
    log,
    signal: stopping.signal,
  });
  const following = follower.run();
  closing.defer(() => {
    stopping.abort();
    return following;
  });
  const seen = () =>
    log.lines.flatMap(({ event, fields }) => (event === 'relay.synced' ? [fields['cluster']] : []));
  const complaints = (cluster: string) =>
    log.lines
      .filter(({ event, fields }) => event === 'relay.watch-failed' && fields['cluster'] === cluster)
      .map(({ fields }) => String(fields['error']));

  await eventually(async () => {
    assert.deepEqual(seen(), ['sound']);
    assert.match(complaints('gone').join(), /eks:DescribeCluster.* found nothing/);
    assert.match(complaints('later').join(), /secretsmanager:GetSecretValue .* found nothing/);
  });
  secret = readFileSync(kubeconfig, 'utf8');
  await eventually(async () => assert.deepEqual(seen(), ['sound', 'later']));
});
