import assert from 'node:assert/strict';
import { test } from 'node:test';
import { h, options, render } from 'preact';
import { PolicyEditor } from '#functions/console/page/views/policy-editor.ts';
import { settled } from '#test/world/turns.ts';
import { FakeNode, fakeDocument } from './fake-node.ts';
import { setGlobals } from './set-globals.ts';

test('asks about what was typed last, and puts no answer to an earlier text in its place', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const texts: string[] = [];
  let answer = Promise.withResolvers<void>();
  setGlobals(t, {
    document: fakeDocument,
    fetch: async (path: string, { body }: { readonly body: string }) => {
      if (path === 'api/session') return Response.json({ token: 'token' });
      const { text } = JSON.parse(body);
      texts.push(text);
      await answer.promise;
      return Response.json({ text: `${text}, read` });
    },
  });
  options.requestAnimationFrame = queueMicrotask;
  t.after(() => delete options.requestAnimationFrame);
  const body = new FakeNode('body');
  t.after(() => render(null, body as never));
  const policy = { cluster: 'prod', revision: 1, text: 'opened', schema: {} };
  render(
    h(PolicyEditor, { policy, text: 'opened', over: policy, onClose: () => undefined } as never),
    body as never,
  );
  await settled();
  const area = body.all.find(({ name }) => name === 'textarea');
  assert.ok(area);
  const type = async (text: string, waitMs: number) => {
    area.value = text;
    area.dispatchEvent(new Event('input'));
    await settled();
    t.mock.timers.tick(waitMs);
    await settled();
  };
  await type('a', 200);
  await type('ab', 400);
  assert.deepEqual(texts, ['ab']);
  await type('abc', 400);
  const first = answer;
  answer = Promise.withResolvers();
  first.resolve();
  await settled();
  assert.deepEqual([area.value, texts], ['abc', ['ab', 'abc']]);
  answer.resolve();
  await settled();
  assert.equal(area.value, 'abc, read');
});
