import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { BY_CLUSTER_QUERIES } from '../../../cdk/dashboard.ts';

const DOCS = join(import.meta.dirname, '../../../docs');
const page = (name: string): string => readFileSync(join(DOCS, name), 'utf8');

/** Commands, operators, and functions of CloudWatch Logs Insights. */
const WORDS = new Set(
  'fields filter stats sort limit by as and or in asc desc count pct max latest bin'.split(' '),
);

/** Returns the first cells of the table under a heading of docs/reference/log-events.md. */
function listed(heading: string): ReadonlySet<string> {
  const section = page('reference/log-events.md').split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
  return new Set([...section.matchAll(/^\| `([^`]+)`/gm)].map(([, name = '']) => name));
}

const queriesOf = (text: string): readonly string[] =>
  [...text.matchAll(/```text\n(.*?)```/gs)].map(([, query = '']) => query);

/** Returns the fields and events that a query names. */
function namesIn(query: string): { readonly fields: readonly string[]; readonly events: readonly string[] } {
  const events = [...query.matchAll(/\bevent (?:= |in \[)([^\]|\n]*)/g)].flatMap(([, list = '']) =>
    [...list.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name),
  );
  const bare = query.replaceAll(/"[^"]*"/g, '');
  const own = new Set([...bare.matchAll(/\bas (\w+)/g)].map(([, name]) => name));
  const words = [...bare.matchAll(/@?[a-z]\w*/gi)].map(([word]) => word);
  return {
    events,
    fields: words.filter((word) => !WORDS.has(word) && !own.has(word) && !word.startsWith('@')),
  };
}

test('queries of the guide and of the dashboard use fields and events that are logged', () => {
  const fields = new Set([...listed('Fields'), 'level', 'time', 'event', 'messageId', 'requestId']);
  const events = listed('Events');
  const inGuide = queriesOf(page('how-to/query-evictions.md'));
  assert.ok(inGuide.length >= 7);
  for (const query of [...inGuide, ...BY_CLUSTER_QUERIES.map(({ lines }) => lines.join('\n| '))]) {
    const found = namesIn(query);
    assert.ok(found.fields.length > 0, query);
    for (const field of found.fields) assert.ok(fields.has(field), `nobody logs ${field}: ${query}`);
    for (const event of found.events) assert.ok(events.has(event), `nobody logs ${event}: ${query}`);
  }
});

test('the query for a delta finds its ID in the logs of relay, delta functions, and evict', () => {
  const rows = page('reference/log-events.md').split('\n');
  for (const event of [
    'relay.delta-sent',
    'node.changed',
    'eviction.scheduled',
    'pod.evicted',
    'message.retrying',
  ]) {
    const row = rows.find((line) => line.startsWith(`| \`${event}\``)) ?? '';
    assert.match(row, /`delta\??`/, event);
  }
});
