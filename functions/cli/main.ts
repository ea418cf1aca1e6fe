import { createInterface } from 'node:readline/promises';
import { FleetError } from '#functions/operator/fleet.ts';
import { openFleet, openLive } from '#functions/operator/open-fleet.ts';
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
import { createProgram } from './program.ts';

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
const fleetDeps = {
  clock: systemClock,
  connect,
  hint: (text: string) => void process.stderr.write(`${text}\n`),
};
const program = createProgram({
  fleet: (choice) => openFleet(choice, fleetDeps),
  live: (choice) => openLive(choice, fleetDeps),
  connect,
  clock: systemClock,
  print: (text) => process.stdout.write(text),
  confirm: process.stdin.isTTY ? confirm : undefined,
});

try {
  await program.parseAsync(process.argv);
} catch (error) {
  const known = OPERATOR_ERRORS.some((kind) => error instanceof kind);
  process.stderr.write(`taintward: ${known ? (error as Error).message : (error as Error).stack}\n`);
  process.exit(1);
}

async function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test(await terminal.question(`${question} [y/N] `));
  } finally {
    terminal.close();
  }
}
