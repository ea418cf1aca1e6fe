import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kubeconfigText } from '#test/cluster/rig/kubeconfig.ts';
import { OwnClock } from '#test/cluster/rig/own-clock.ts';
import { ServiceProcess } from '#test/cluster/rig/service-process.ts';
import type { Way } from './chaos.ts';
import type { Form } from './victim.ts';

const CONTEXT = 'chaos';

/** Runs `npm start`, with its state kept across restarts. */
export async function oneProcess({ account, gate }: Way): Promise<Form> {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-chaos-'));
  const kubeconfig = join(dir, 'kubeconfig');
  const entry = { context: CONTEXT, connection: gate.connection, token: account.token };
  writeFileSync(kubeconfig, await kubeconfigText([entry]), { mode: 0o600 });
  const crashes: string[] = [];
  const stateDir = join(dir, 'state');
  const clock = new OwnClock(join(dir, 'own-clock'));
  const spawn = () => ServiceProcess.spawn({ kubeconfig, contexts: [CONTEXT], stateDir, env: clock.env });
  let service = await spawn();
  const noteCrash = () => {
    if (service.ended) crashes.push(`the service ended: ${JSON.stringify(service.ended)}`);
  };
  const victim = {
    name: 'service',
    kill: () => {
      noteCrash();
      return service.kill();
    },
    start: async () => {
      service = await spawn();
    },
    pause: () => service.pause(),
    resume: () => service.resume(),
    setClock: (aheadMs: number) => clock.set(aheadMs),
    receivesAnswers: true,
  } as const;
  return {
    victims: [victim],
    crashes,
    ready: async () => {
      noteCrash();
      if (service.ended) service = await spawn();
      await service.ready();
    },
    close: async () => {
      await service.kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
