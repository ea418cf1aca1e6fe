import { createInterface } from 'node:readline/promises';
import { CommanderError } from 'commander';
import { FleetError } from '#functions/operator/fleet.ts';
import { type OpenFleetDeps, openFleet, openLive } from '#functions/operator/open-fleet.ts';
import { AwsClients } from '#shared/clusters/aws-clients.ts';
import { connector } from '#shared/clusters/connect.ts';
import { localContextConnection } from '#shared/clusters/local-context-connection.ts';
import { OrderError } from '#shared/clusters/operator.ts';
import { PolicyError } from '#shared/clusters/policy-document.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig-file.ts';
import { QueueError } from '#shared/queues/sender.ts';
import { StoreError } from '#shared/store/store.ts';
import { systemClock } from '#shared/time/clock.ts';
import { CliError } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { terminalPaint } from './paint.ts';
import { createProgram } from './program.ts';
import { terminalProgress } from './progress.ts';
import { watchOn } from './watch.ts';

/** Whatever goes wrong by the operator's hand is one of these, with a message made for the operator. */
const OPERATOR_ERRORS = [
  ApiError,
  CliError,
  FleetError,
  KubeconfigError,
  OrderError,
  PolicyError,
  QueueError,
  StoreError,
];

const connect = connector({
  aws: new AwsClients(),
  clock: systemClock,
  localContext: localContextConnection,
});
const progress = terminalProgress(process.stderr);
const fleetDeps: OpenFleetDeps = {
  clock: systemClock,
  connect,
  hint: (text) => process.stderr.write(`${text}\n`),
};
const program = createProgram({
  fleet: (choice) => openFleet(choice, fleetDeps),
  live: (choice) => openLive(choice, fleetDeps),
  connect,
  clock: systemClock,
  print(text) {
    progress();
    process.stdout.write(text);
  },
  paint: terminalPaint,
  progress,
  watch: (look) => {
    const seenEnough = new AbortController();
    process.once('SIGINT', () => seenEnough.abort());
    return watchOn(process.stdout, seenEnough.signal)(look);
  },
  exitWith(code) {
    process.exitCode = code;
  },
  confirm: process.stdin.isTTY ? confirm : undefined,
});

// Whoever reads has seen enough, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT.fine);
});

try {
  await program.parseAsync(process.argv);
} catch (error) {
  process.exitCode = endOf(error);
} finally {
  progress();
}

/** With which code, after what was said. */
function endOf(error: unknown): ExitCode {
  // Commander has said it.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage;
  progress();
  const known = OPERATOR_ERRORS.some((kind) => error instanceof kind);
  process.stderr.write(`taintward: ${known ? (error as Error).message : (error as Error).stack}\n`);
  return EXIT.failed;
}

async function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test(await terminal.question(`${question} [y/N] `));
  } finally {
    terminal.close();
  }
}
