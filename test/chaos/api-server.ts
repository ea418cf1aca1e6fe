import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Gate } from '#test/cluster/rig/gate.ts';
import type { Victim } from './victim.ts';

/** A real API server for this run alone. */
export interface OwnApiServer {
  readonly kubeconfig: string;
  readonly victim: Victim;
  close(): Promise<void>;
}

/**
 * Starts one by `PROGRAM up --dir DIR`, which prints `ready` and leaves `DIR/kubeconfig`. It is suspended and resumed
 * as a whole, etcd included. It is not killed: it starts with an empty etcd, which no real cluster does.
 */
export async function ownApiServer(program: string): Promise<OwnApiServer> {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-chaos-api-'));
  const child = spawn(program, ['up', '--dir', dir], { stdio: ['ignore', 'pipe', 'ignore'] });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const ended = once(child, 'close');
  const lines = createInterface({ input: child.stdout });
  const ready = await Promise.race([once(lines, 'line'), ended.then(() => undefined)]);
  if (String(ready) !== 'ready') {
    throw new Error(`${program} up --dir ${dir} did not print "ready": see ${dir}.`);
  }
  return {
    kubeconfig: join(dir, 'kubeconfig'),
    victim: {
      name: 'API server',
      pause: () => void child.kill('SIGSTOP'),
      resume: () => void child.kill('SIGCONT'),
    },
    close: async () => {
      process.off('exit', kill);
      child.kill('SIGCONT');
      child.kill('SIGTERM');
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Returns a victim for a shared API server, which stops answering only the service. */
export function behindGate(gate: Gate): Victim {
  let goOn: () => void = () => undefined;
  return {
    name: 'API server (at the proxy)',
    pause: () => {
      goOn = gate.freeze();
    },
    resume: () => goOn(),
    // The proxy is behind the stopped gate, so its responses are not received.
    receivesAnswers: true,
  };
}
