import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';

/** Runs kubectl as the user in `KUBECONFIG`; returns its output, or fails with its standard error. */
export function kubectl(args: readonly string[], input = ''): string {
  const { status, stdout, stderr, error } = spawnSync('kubectl', args, { input, encoding: 'utf8' });
  assert.equal(status, 0, error?.message ?? `kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}
