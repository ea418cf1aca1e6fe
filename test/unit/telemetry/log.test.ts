import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { enterLogContext, inLogContext, jsonLog, type LogFields } from '#shared/telemetry/log.ts';

/** A log, and the fields of each line it has written, without when and how grave. */
function recordedLog() {
  const lines: LogFields[] = [];
  const write = (line: string): void => {
    const { time: _time, level: _level, ...fields } = JSON.parse(line);
    lines.push(fields);
  };
  return { log: jsonLog('info', { write }), lines };
}

test('a line carries the fields of what its work belongs to, and of no other line', async () => {
  const { log, lines } = recordedLog();
  await (async () => {
    enterLogContext({ requestId: 'r1' });
    inLogContext({ messageId: 'm1' }, () => {
      log.info('cluster.removed', { cluster: clusterName('c1') });
      log.info('relay.stopping');
    });
    log.info('relay.stopped');
  })();
  assert.deepEqual(lines, [
    { messageId: 'm1', cluster: 'c1', event: 'cluster.removed' },
    { messageId: 'm1', event: 'relay.stopping' },
    { requestId: 'r1', event: 'relay.stopped' },
  ]);
});
