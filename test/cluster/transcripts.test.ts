import { join } from 'node:path';
import { test } from 'node:test';
import { npmStart } from '#test/transcripts/npm-start.ts';
import { Transcript } from '#test/transcripts/transcript.ts';
import { fileStage } from './rig/file-stage.ts';
import { CONTEXT } from './rig/stage.ts';
import { tolerates } from './rig/tolerations.ts';

const stage = fileStage('bare');

test('a session at a real API server', async (t) => {
  const { cluster } = stage();
  const { kubeconfig } = stage();
  const { state } = await npmStart(t, '--enforce', '--context', CONTEXT, '--kubeconfig', kubeconfig);
  const names: readonly (readonly [string | RegExp, string])[] = [
    [cluster.run, 'run'],
    // Some control planes show their flags.
    [/^ +\w+ +built-in .*\n( {21}.*\n)?/gm, '  (whether the built-in controller runs)\n'],
    [/(?<=enforce +)(off|unknown)/g, '<built-in>'],
  ];
  const at = new Transcript({ always: ['--state', state], names });
  await at.say('doctor');
  const node = await cluster.addNode('told');
  await cluster.addPod(node, 'told', { tolerations: [tolerates('x', 3_600)] });
  await cluster.taint(node, { key: 'x' });
  at.note('A pod tolerates the taint of its node for an hour.');
  await at.until(({ out }) => /told/.test(out), ['pending', CONTEXT]);
  await at.say('status');
  await at.say('hold', 'node', node, '--cluster', CONTEXT, '--why', 'it is being mended');
  await at.say('holds');
  await at.say('pause', CONTEXT, '--why', 'wait a moment');
  await at.say('resume', CONTEXT, '--why', 'go on');
  await cluster.untaint(node, 'x');
  at.note('The taint is taken away.');
  await at.until(({ out }) => !/told/.test(out), ['pending']);
  await at.say('history', '--pod', 'told');
  at.compare(t, join(import.meta.dirname, 'transcripts.txt'));
});
