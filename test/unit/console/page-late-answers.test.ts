import assert from 'node:assert/strict';
import { test } from 'node:test';
import { html } from 'htm/preact';
import { options, render } from 'preact';
import { pendingVersion } from '#functions/console/page/live.ts';
import { useAnswer } from '#functions/console/page/use-answer.ts';
import { settled } from '#test/world/turns.ts';
import { FakeNode, fakeDocument } from './fake-node.ts';
import { setGlobals } from './set-globals.ts';

/** Shows the answer about a cluster, or its error. */
function View({ cluster }: { readonly cluster: string }) {
  const { answer, error } = useAnswer('GET api/stuck', () => ({ cluster }), [cluster]);
  return html`<p>${error ?? JSON.stringify(answer)}</p>`;
}

test('a view that is gone asks nothing, whatever changes just before or after', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 10_000 });
  let requests = 0;
  const fetch = () => {
    requests += 1;
    return Response.json([]);
  };
  setGlobals(t, { document: fakeDocument, fetch: async () => fetch() });
  options.requestAnimationFrame = queueMicrotask;
  t.after(() => delete options.requestAnimationFrame);
  const body = new FakeNode('body');
  const pass = async () => {
    await settled();
    t.mock.timers.tick(5_000);
    await settled();
  };
  const counts: number[] = [];
  for (const isBefore of [true, false]) {
    render(html`<${View} cluster="a" />`, body as never);
    await pass();
    if (isBefore) pendingVersion.value += 1;
    render(null, body as never);
    await settled();
    pendingVersion.value += 1;
    await pass();
    counts.push(requests);
  }
  assert.deepEqual(counts, [1, 2]);
});

for (const status of [200, 502])
  test(`shows the answer to the last question when an earlier question is answered later with ${status}`, async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const answers = new Map<string, PromiseWithResolvers<Response>>();
    setGlobals(t, {
      document: fakeDocument,
      fetch: (path: string) => {
        const answer = Promise.withResolvers<Response>();
        answers.set(path, answer);
        return answer.promise;
      },
    });
    options.requestAnimationFrame = queueMicrotask;
    t.after(() => delete options.requestAnimationFrame);
    const body = new FakeNode('body');
    t.after(() => render(null, body as never));
    for (const cluster of ['a', 'b']) {
      render(html`<${View} cluster=${cluster} />`, body as never);
      await settled();
      t.mock.timers.tick(2_000);
      await settled();
    }
    answers.get('api/stuck?cluster=b')?.resolve(Response.json('of b'));
    await settled();
    answers.get('api/stuck?cluster=a')?.resolve(Response.json({ error: 'of a' }, { status }));
    await settled();
    assert.deepEqual(body.all.map(({ data }) => data).filter(Boolean), ['"of b"']);
  });
