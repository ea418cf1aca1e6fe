import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WAIT_SECONDS } from '#functions/agent/due-source.ts';
import { entryConstant, numberIn, textOf } from '../entry-constant.ts';

/** Fargate's time to stop for a container that declares none. */
const FARGATE_SECONDS = 30;
/** Time of a process for its last log lines and its exit. */
const SPARE_MS = 5_000;

const graceMs = (path: string): number => 1_000 * numberIn(path, /^ *terminationGracePeriodSeconds: (\d+)$/m);

const platforms = {
  Fargate: FARGATE_SECONDS * 1_000,
  chart: graceMs('deploy/chart/templates/deployment.yaml'),
  'deploy/agent': graceMs('deploy/agent/deployment.yaml'),
  'deploy/in-cluster': graceMs('deploy/in-cluster/deployment.yaml'),
};

test('a relay and an agent end before their platform kills them', () => {
  assert.doesNotMatch(textOf('cdk/relay.ts'), /stopTimeout/, 'Fargate has its default time to stop');
  const longestMs = Math.max(
    entryConstant('functions/relay/main.ts', 'STOP_TIMEOUT_MS'),
    entryConstant('functions/agent/main.ts', 'STOP_TIMEOUT_MS'),
  );
  for (const [platform, ms] of Object.entries(platforms))
    assert.ok(longestMs + SPARE_MS <= ms, `${longestMs} ms on ${platform}`);
});

test('an agent waits long enough for a receive call, the messages in hand, and their Events', () => {
  const handledMs = entryConstant('functions/agent/main.ts', 'HANDLED_WITHIN_MS');
  const eventsMs = entryConstant('shared/engine/evict/later-events.ts', 'DRAIN_MS');
  const stopMs = entryConstant('functions/agent/main.ts', 'STOP_TIMEOUT_MS');
  assert.ok(WAIT_SECONDS * 1_000 + handledMs + eventsMs <= stopMs);
  assert.match(textOf('functions/agent/main.ts'), /due\.stop\(HANDLED_WITHIN_MS\)/);
});
