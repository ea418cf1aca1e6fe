import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeName } from '#shared/eviction/identity.ts';
import { Knowledge } from '#test/simulation/knowledge.ts';

const node = nodeName('n1');
const delta = (epoch: number) => ({
  body: JSON.stringify({ node, version: { epoch, sequence: 1 }, observedAt: 1_000 }),
  deduplicationId: `${epoch}-1`,
});

test("ignores deltas of a relay after another relay acquired the lease, even before that relay's first read", () => {
  const knowledge = new Knowledge();
  knowledge.leaseTaken(1);
  knowledge.seen(1, node, 7, 1_000);
  knowledge.sent(delta(1));
  knowledge.leaseTaken(2);
  knowledge.taken(delta(1), 2_000);
  assert.equal(knowledge.decidedBy(node, 7, 3_000), false);
  assert.equal(knowledge.sentAny(node, [7], 3_000), true);
});

test('does not count deltas that a relay sent after it lost the lease', () => {
  const knowledge = new Knowledge();
  knowledge.leaseTaken(1);
  knowledge.seen(1, node, 7, 1_000);
  knowledge.leaseTaken(2);
  knowledge.sent(delta(1));
  knowledge.taken(delta(1), 2_000);
  assert.equal(knowledge.sentAny(node, [7], 3_000), false);
});
