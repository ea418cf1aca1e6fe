import assert from 'node:assert/strict';
import { test } from 'node:test';
import { h, options, render } from 'preact';
import { Confirmation, confirm, showMessage, shownMessage } from '#functions/console/page/acts.ts';
import { settled } from '#test/world/turns.ts';
import { FakeNode, fakeDocument } from './fake-node.ts';
import { setGlobals } from './set-globals.ts';

for (const status of [200, 502])
  test(`shows the preview of the chosen duration alone when an earlier one is answered later with ${status}`, async (t) => {
    /** The answers that the test gives, by the duration of the act. */
    const previews = new Map<number, PromiseWithResolvers<Response>>();
    setGlobals(t, {
      document: fakeDocument,
      HTMLSelectElement: FakeNode,
      fetch: async (path: string, { body }: { readonly body: string }) => {
        if (path === 'api/session') return Response.json({ token: 'token' });
        const answer = Promise.withResolvers<Response>();
        previews.set(JSON.parse(body).durationMs ?? 0, answer);
        return answer.promise;
      },
    });
    options.requestAnimationFrame = queueMicrotask;
    t.after(() => delete options.requestAnimationFrame);
    const body = new FakeNode('body');
    render(h(Confirmation, {}), body as never);
    confirm({ title: 'Stop?', verb: 'Stop', draft: { kind: 'stop' } });
    await settled();
    const select = body.all.find(({ name }) => name === 'select');
    assert.ok(select);
    select.value = '900000';
    select.dispatchEvent(new Event('change'));
    await settled();
    for (const durationMs of [900_000, 0]) {
      const preview = { change: `for ${durationMs} ms`, effects: [], pods: { evictedNow: 0 } };
      const answer = { ...preview, error: 'failed in 0 ms' };
      previews.get(durationMs)?.resolve(Response.json(answer, { status: durationMs > 0 ? 200 : status }));
      await settled();
    }
    const shown = body.all.map(({ data }) => data).filter((text) => text.endsWith(' ms'));
    assert.deepEqual(shown, ['for 900000 ms']);
  });

test('shows a second message as long as the first', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const shown = ['one', 'two'].map((message) => {
    showMessage(message);
    t.mock.timers.tick(5_000);
    return shownMessage.value;
  });
  assert.deepEqual(shown, ['one', 'two']);
  t.mock.timers.tick(1_000);
  assert.equal(shownMessage.value, '');
});
