import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Console } from '#shared/console/server.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { systemClock } from '#shared/time/clock.ts';
import { aNode, anEnding, aReason, aRecord, aRef, aTaint } from '#test/contracts/partition-builders.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { unansweredConsole } from './unanswered-console.ts';

/** Opens a console of a fleet in which all names that others choose contain `text`, as a compromised relay can set them. */
export async function openNamed(t: TestContext, name: string, text: string): Promise<Console> {
  const clock = systemClock;
  const { fleet, store } = embeddedFleet(t, { clusters: [name], clock });
  const [cluster = assert.fail('there is no cluster')] = await fleet.clusters();
  const now = clock.now();
  const ref = aRef(cluster, `node${text}`);
  const workload = { namespace: `ns${text}`, owner: { kind: text, name: text }, error: text };
  const record = { ...workload, causes: [aReason('key', text)], startedAt: now, podSince: now - 60_000 };
  const pending = aRecord({ ...record, name: `pending${text}`, dueAt: now + 3_600_000 });
  const gone = aRecord({ ...record, name: `gone${text}`, dueAt: now - 60_000 });
  const taints = [aTaint({ key: 'key', value: text, since: now - 60_000 })];
  const node = aNode({ taints, observedAt: now });
  await store.commit(ref, 0, { node, schedule: [pending], end: [], live: true }, now);
  await store.end(ref, [anEnding(gone, { error: text })], now);
  await perform({ kind: 'stop', cluster, reason: text }, await fleet.operator());
  return unansweredConsole(fleet, `It is a scene: ${text}`);
}
