import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { endsWithin } from '#shared/time/stopping.ts';

describe('work with a time limit', () => {
  test('is waited for, and leaves no timer', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
    const before = timers();
    assert.equal(await endsWithin(60_000, Promise.resolve()), true);
    assert.equal(timers(), before);
  });

  test('is not waited for after the limit', async () => {
    assert.equal(await endsWithin(5, new Promise(() => undefined)), false);
  });

  test('passes its failure on', async () => {
    await assert.rejects(endsWithin(5, Promise.reject(new Error('no'))), { message: 'no' });
  });
});
