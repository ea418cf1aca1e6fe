import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

/** Runs promtool, which `PROMTOOL` names; fails with its output unless it succeeds. */
export function promtool(...args: readonly string[]): void {
  const binary = process.env['PROMTOOL'];
  assert.ok(binary, 'set PROMTOOL to promtool of Prometheus 3, which evaluates the queries');
  const { status, stdout, stderr, error } = spawnSync(binary, args, { encoding: 'utf8' });
  assert.equal(status, 0, error?.message ?? `promtool ${args.join(' ')}:\n${stdout}${stderr}`);
}
