import { test } from 'node:test';
import { followPage } from '#test/transcripts/follow-page.ts';

test('the tutorial does what it says, command after command', (t) =>
  followPage(t, 'tutorials/simulated-cluster.md', { suite: 'system' }));
