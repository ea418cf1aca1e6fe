import assert from 'node:assert/strict';
import { test } from 'node:test';
import { h, render } from 'preact';
import type { Hold } from '#shared/eviction/policy.ts';
import type { FleetStatus } from '#shared/operations/look/status.ts';
import { settled } from '#test/world/turns.ts';
import { FakeNode, fakeDocument } from './fake-node.ts';
import { setGlobals } from './set-globals.ts';

const onNode = (id: string, node: string) => ({ id, target: { kind: 'node', node } }) as Hold;
const OWN = onNode('h1', 'n1');
/** Holds of other objects, some with the node's name. */
const OTHERS = [
  onNode('h2', 'n2'),
  { id: 'h3', target: { kind: 'zone', zone: 'n1' } },
  { id: 'h4', target: { kind: 'pod', namespace: 'n1', name: 'n1' } },
] as readonly Hold[];

test('the page of a node releases the hold of that node alone, and offers one if it has none', async (t) => {
  setGlobals(t, {
    document: fakeDocument,
    location: { hash: '#/node/prod/n1' },
    addEventListener: () => undefined,
  });
  const { NodeStory } = await import('#functions/console/page/views/node-story.ts');
  const { status } = await import('#functions/console/page/live.ts');
  const rows: readonly (readonly [holds: readonly Hold[], elsewhere: readonly Hold[], button: string])[] = [
    [[], [], 'Hold pods'],
    [OTHERS, [OWN], 'Hold pods'],
    [[OWN], OTHERS, 'Release hold h1'],
    [[...OTHERS, OWN], [OWN], 'Release hold h1'],
  ];
  for (const [holds, elsewhere, button] of rows) {
    const clusters = [
      { cluster: 'stage', holds: elsewhere },
      { cluster: 'prod', holds },
    ];
    status.value = { clusters } as unknown as FleetStatus;
    const body = new FakeNode('body');
    render(h(NodeStory, {}), body as never);
    await settled();
    const texts = body.all.filter(({ name }) => name === 'button').flatMap(({ all }) => all);
    assert.deepEqual(
      texts.flatMap(({ data }) => data || []),
      [button],
    );
    render(null, body as never);
  }
});
