import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CONDITIONS, type ConditionType, type Issue } from '#shared/conditions/conditions.ts';
import { consoleLinkSchema } from '#shared/operations/fleet/service-view.ts';
import { askSocket, SOCKET_FILE } from '#shared/operations/fleet/state-socket.ts';
import type { Finding } from '#shared/operations/look/finding.ts';
import { taintward } from '#test/transcripts/transcript.ts';
import { opened } from '#test/world/console-client.ts';
import type { ServiceProcess } from './service-process.ts';
import { until } from './until.ts';

/** The time in which all surfaces show a condition. */
export const WITHIN_MS = 30_000;
const BETWEEN_READS_MS = 500;

/** Conditions that `/readyz` does not show: pods and operators cause them, not the relay. */
const NOT_PROBED: readonly ConditionType[] = ['delayed', 'failed', 'stuck-terminating', 'stopped'];

/** Opens all surfaces of a service; returns a function that waits until they show a condition, or all of them do not. */
export async function surfacesOf(service: ServiceProcess) {
  const { link = assert.fail('it serves no console') } = consoleLinkSchema.parse(
    await askSocket(join(service.stateDir, SOCKET_FILE), '/console/link', 'POST'),
  );
  const { request } = await opened(link);
  const command = async (name: string) => {
    const { out, code } = await taintward(name, '-o', 'json', '--state-dir', service.stateDir);
    return { code, json: JSON.parse(out) };
  };

  return async (type: ConditionType, isShown: boolean, withinMs = WITHIN_MS): Promise<void> => {
    const messagesIn = (issues: readonly Issue[]) =>
      issues
        .filter((issue) => issue.type === type && issue.severity === CONDITIONS[type].severity)
        .map(({ message, remediation }) => `${message} ${remediation}`);
    const agree = async () => {
      const [status, doctor, page, { lines }] = await Promise.all([
        command('status'),
        command('doctor'),
        request('GET api/status', {}),
        service.readyz(),
      ]);
      const messages = messagesIn(status.json.issues);
      const findings: readonly Finding[] = doctor.json;
      const found = findings.flatMap(({ verdict, message, remediation }) =>
        verdict === 'bad' && messages.includes(`${message} ${remediation}`) ? message : [],
      );
      const probed = lines.filter((line) => line.split(' ')[1] === `${type}:`);
      const isAgreed =
        messages.length > 0 === isShown &&
        // A duration in a message may grow between two reads.
        messagesIn(page.issues).length === messages.length &&
        found.length === messages.length &&
        probed.length === (NOT_PROBED.includes(type) ? 0 : messages.length) &&
        (!isShown || (status.code === 2 && doctor.code === 2));
      if (!isAgreed) await delay(BETWEEN_READS_MS);
      return isAgreed;
    };
    await until(`all surfaces show ${isShown ? '' : 'no '}${type}`, agree, withinMs);
  };
}
