import { test } from 'node:test';
import { followPage } from '#test/transcripts/follow-page.ts';

test('the commands of the tutorial work one after the other', (t) =>
  followPage(t, 'tutorials/simulated-cluster.md', { suite: 'system' }));
