import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Issue } from '#shared/conditions/conditions.ts';
import { SOCKET_FILE } from '#shared/operations/fleet/state-socket.ts';
import type { Finding } from '#shared/operations/look/finding.ts';
import { until } from '#test/cluster/rig/until.ts';
import { type Printed, taintward } from '#test/transcripts/transcript.ts';
import { npmStart } from '#test/world/npm-start.ts';

/** Time within which the commands report it. */
const WITHIN_MS = 15_000;

/** Starts `npm start` with the simulated cluster. `ending` waits until a command ends with one of these codes. */
async function demo(t: Parameters<typeof npmStart>[0]) {
  const service = await npmStart(t);
  const ending = (codes: readonly number[], ...words: readonly string[]): Promise<Printed> =>
    until(
      `${words.join(' ')} ends with ${codes.join(' or ')}`,
      async () => {
        const printed = await taintward(...words, '-o', 'json', '--state-dir', service.state);
        return codes.includes(printed.code) && printed;
      },
      WITHIN_MS,
    );
  /** Types of the issues in `status`, and the facts that it lacks, once it ends with one of these codes. */
  const status = async (...codes: readonly number[]) => {
    const { issues, unknown } = JSON.parse((await ending(codes, 'status')).out);
    return { issues: issues.map(({ type }: Issue) => type), unknown };
  };
  /** Checks of `doctor` that fail. */
  const bad = async () => {
    const findings: readonly Finding[] = JSON.parse((await ending([2], 'doctor')).out);
    return findings.filter(({ verdict }) => verdict === 'bad').map(({ check }) => check);
  };
  assert.deepEqual(await status(0), { issues: [], unknown: [] });
  return { service, ending, status, bad };
}

test('status and doctor report a suspended npm start within 15 s, until it resumes', async (t) => {
  const { service, status, bad } = await demo(t);
  service.pause();
  // While its lease may still be renewed, the state is unknown. The commands also wait for the simulated cluster.
  const { issues, unknown } = await status(69, 2);
  assert.ok(issues.length > 0 || unknown.some((text: string) => text.includes(SOCKET_FILE)));
  assert.deepEqual((await status(2)).issues, ['not-responding']);
  assert.ok((await bad()).includes('process'));
  service.resume();
  await status(0);
});

test('status and doctor report a killed npm start within 15 s', async (t) => {
  const { service, status, bad, ending } = await demo(t);
  service.signal('SIGKILL');
  assert.deepEqual((await status(2)).issues, ['not-running']);
  assert.ok((await bad()).includes('process'));
  assert.notEqual((await ending([69], 'pending')).err, '');
});

test('status, doctor, and /readyz report the same conditions of a running npm start', async (t) => {
  const { service, ending } = await demo(t);
  const { port } = await service.event('relay.started');
  /** Reads the conditions of all surfaces until each of them shows exactly these. */
  const shown = (types: readonly string[], probed: readonly string[] = types) =>
    until(`all show ${types.join(' and ')}`, async () => {
      const codes = types.length > 0 ? [2] : [0];
      const { issues } = JSON.parse((await ending(codes, 'status')).out);
      const findings: readonly Finding[] = JSON.parse((await ending(codes, 'doctor')).out);
      const readyz = await (await fetch(`http://127.0.0.1:${port}/readyz?verbose`)).text();
      const found = issues.map(({ type }: Issue) => type);
      const failed = [...readyz.matchAll(/^\[-\]simulated\/(\S+) failed: /gm)].map(([, type = '']) => type);
      const messages = findings.flatMap(({ verdict, message }) => (verdict === 'bad' ? message : []));
      return (
        isDeepStrictEqual([...new Set(found)], types) &&
        isDeepStrictEqual([...new Set(failed)], probed) &&
        issues.every(({ message }: Issue) => messages.includes(message)) &&
        readyz.endsWith('readyz check passed\n')
      );
    });
  await shown([]);
  for (const node of [1, 2, 3, 4])
    service.type(`taint node-${node} node.kubernetes.io/unreachable:NoExecute`);
  await shown(['guard-tripped']);
  await taintward('stop', 'simulated', '--reason', 'an incident', '--state-dir', service.state);
  // A stop is the operators' own, and no reason to restart or to wake anybody: a probe does not fail by it.
  await shown(['guard-tripped', 'stopped'], ['guard-tripped']);
});
