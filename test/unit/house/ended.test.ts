import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../../..');

/** What a program starts, and the calls without which it works too late, leaves something behind, or does not end. */
const CALLS: Readonly<Record<string, readonly string[]>> = {
  DueSource: ['stop'],
  Decisions: ['ended'],
  Evictions: ['stop'],
  LaterEvents: ['ahead', 'stop'],
  'ManagedClusters.open': ['close'],
  Relay: ['stop'],
  RulesWatch: ['stop'],
  listenOnSocket: ['close'],
  startConsole: ['close'],
  startDemo: ['close'],
  startLocalService: ['stop'],
  startProbeServer: ['close'],
  startUpkeep: ['stop'],
  takeStateDirectory: ['release'],
};

test('each program stops and closes what it starts, or exits', () => {
  const seen = new Set<string>();
  const missing = globSync('functions/{agent,relay,service}/*.ts', { cwd: ROOT }).flatMap((file) => {
    const source = readFileSync(join(ROOT, file), 'utf8');
    const exits = source.includes('process.exit(0)');
    return Object.entries(CALLS).flatMap(([start, calls]) => {
      const [, name] = new RegExp(`(\\w+) =[^;=]*?\\b${start.replace('.', '\\.')}\\(`).exec(source) ?? [];
      if (name === undefined) return [];
      seen.add(start);
      const needed = exits ? calls.filter((call) => call !== 'close') : calls;
      return needed
        .filter((call) => !new RegExp(`\\b${name}\\??\\.${call}\\(`).test(source))
        .map((call) => `${file}: ${name}.${call}()`);
    });
  });
  assert.deepEqual(missing, []);
  assert.deepEqual([...seen].toSorted(), Object.keys(CALLS).toSorted());
});
