import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { enterLogContext, inLogContext, jsonLog, type LogFields } from '#shared/telemetry/log.ts';

/** A log, and the fields of its lines without time and level. */
function recordedLog() {
  const lines: LogFields[] = [];
  const write = (line: string): void => {
    const { time: _time, level: _level, ...fields } = JSON.parse(line);
    lines.push(fields);
  };
  return { log: jsonLog({ write }), lines };
}

test('a line has the fields of its own context only', async () => {
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

test('a line has its severity and time', () => {
  const written: string[] = [];
  const log = jsonLog({ write: (line) => written.push(line) });
  log.error('relay.stopping');
  assert.match(
    written.join(''),
    /^\{"level":"error","time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","event":"relay\.stopping"\}\n$/,
  );
});

test('logs only the message of an error, because its stack, cause, and fields may hold credentials', () => {
  const { log, lines } = recordedLog();
  const cause = new Error('Authorization: Bearer sesame');
  const error = Object.assign(new Error('the server refused', { cause }), {
    config: { headers: { authorization: 'Bearer sesame' } },
  });
  log.warn('relay.watch-failed', { cluster: clusterName('c1'), resource: 'nodes', error });
  assert.deepEqual(lines, [
    { cluster: 'c1', resource: 'nodes', error: 'the server refused', event: 'relay.watch-failed' },
  ]);
});

test('logs whatever was thrown, although JSON cannot show it', () => {
  const { log, lines } = recordedLog();
  const circle: { self?: object } = {};
  circle.self = circle;
  for (const error of [circle, 5n, 'a sentence']) log.error('registry.unreadable', { error });
  assert.deepEqual(
    lines.map(({ error }) => error),
    ['[object Object]', '5', 'a sentence'],
  );
});

test('keeps a name within its line, whatever it contains', () => {
  const written: string[] = [];
  const log = jsonLog({ write: (line: string) => written.push(line) });
  const odd = clusterName('c\n{"level":"error"}\r\u001b[2J');
  log.info('cluster.removed', { cluster: odd });
  assert.equal(written.length, 1);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there
  assert.doesNotMatch(written[0]?.trimEnd() ?? '', /[\u0000-\u001f]/);
  assert.equal(JSON.parse(written[0] ?? '').cluster, odd);
});
