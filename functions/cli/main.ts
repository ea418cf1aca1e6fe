import type { Connect } from '#shared/access/connect.ts';
import { lazyConnection, localContextConnection } from '#shared/access/local-context-connection.ts';
import { type OpenFleetDeps, openFleet, openLive } from '#shared/operations/fleet/open-fleet.ts';
import { systemClock } from '#shared/time/clock.ts';
import { onStopSignal } from '#shared/time/stopping.ts';
import type { CliDeps } from './command.ts';
import { terminalConfirm } from './confirm.ts';
import { EXIT } from './exit-codes.ts';
import { terminalPaint } from './paint.ts';
import { terminalProgress } from './progress.ts';
import { run } from './run.ts';
import { watchOn } from './watch.ts';

async function loadConnect(): Promise<Connect> {
  const { AwsClients } = await import('#shared/access/aws-clients.ts');
  const { connector } = await import('#shared/access/connect.ts');
  return connector({ aws: new AwsClients(), clock: systemClock });
}

let loaded: Promise<Connect> | undefined;
const connect: Connect = (cluster, part) => {
  if (cluster.access.kind === 'local-context') return localContextConnection(cluster.access);
  return lazyConnection(`cluster ${cluster.name}`, async () => {
    loaded ??= loadConnect();
    return (await loaded)(cluster, part);
  });
};
const fleetDeps: OpenFleetDeps = {
  clock: systemClock,
  connect,
  hint: (text) => process.stderr.write(`${text}\n`),
};
const deps: Omit<CliDeps, 'exitWith'> = {
  fleet: (choice) => openFleet(choice, fleetDeps),
  live: (choice) => openLive(choice, fleetDeps),
  connect,
  clock: systemClock,
  print: (text) => process.stdout.write(text),
  paint: terminalPaint,
  progress: terminalProgress(process.stderr),
  watch: (show) => {
    const seenEnough = new AbortController();
    onStopSignal(() => seenEnough.abort());
    return watchOn(process.stdout, seenEnough.signal)(show);
  },
  confirm: terminalConfirm(process),
  complain: (text) => process.stderr.write(text),
};

// The reader of the pipe has closed it, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT.fine);
});

process.exitCode = await run(process.argv.slice(2), deps);
