import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { podHistoryLines } from '#functions/cli/history.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { whyText } from '#shared/operations/look/history-text.ts';
import { textLog } from '#shared/telemetry/text-log.ts';
import { durationMs, durationText } from '#shared/time/duration.ts';

test('parses days, hours, minutes, and seconds, in this order', () => {
  assert.equal(durationMs('90s'), 90_000);
  assert.equal(durationMs('1d2h3m4s'), 93_784_000);
  assert.equal(durationMs('0s'), 0);
  for (const text of ['', '5', '5 m', '1.5h', '-1m', '1m1h', '1w', 'm']) {
    assert.equal(durationMs(text), undefined, text);
  }
});

test('parses formatted durations back', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e9 }), (seconds) => {
      assert.equal(durationMs(durationText(seconds * 1000)), seconds * 1000);
    }),
  );
});

test('formats durations below a second in milliseconds, and negative ones as zero', () => {
  const cases = { [-5]: '0s', 0: '0s', 40: '40ms', 1999: '1s', 604133: '10m4s', 356400000: '4d3h' };
  for (const [ms, text] of Object.entries(cases)) assert.equal(durationText(Number(ms)), text);
});

test('formats any duration alike on the command line, on the page, and in the log', () => {
  const pod = {
    cluster: clusterName('c'),
    node: nodeName('n'),
    namespace: 'shop',
    pod: 'web',
    uid: podUid('u'),
  };
  const log: string[] = [];
  const write = textLog({ now: () => 0 }, (line) => log.push(line));
  fc.assert(
    fc.property(fc.nat(1e10), (delayMs) => {
      const entry = { ...pod, event: 'evicted', at: 0, dueAt: 0, causes: [], delayMs } as const;
      const [, row = ''] = podHistoryLines([entry], { wide: false, paint: (_, text) => text });
      write.info('pod.evicted', { ...pod, delta: '', delayMs });
      const shown = [
        /Z +(\S+) +taintward/.exec(row),
        /(\S+) after the deadline/.exec(whyText({ of: 'pod', entry })),
        /delay (\S+)\)/.exec(log.at(-1) ?? ''),
      ].map((found) => found?.[1]);
      assert.deepEqual(shown, Array(3).fill(durationText(delayMs)));
    }),
  );
});
