import { createInterface } from 'node:readline/promises';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CLIENT_SETTINGS } from '#shared/aws/client-settings.ts';
import { AwsClients } from '#shared/clusters/aws-clients.ts';
import { connector } from '#shared/clusters/connect.ts';
import { DynamoDbClusterRegistry } from '#shared/clusters/dynamodb-registry.ts';
import { localContextConnection } from '#shared/clusters/local-context-connection.ts';
import { OrderError } from '#shared/clusters/operator.ts';
import { PolicyError } from '#shared/clusters/policy-document.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { DynamoDbTable } from '#shared/store/dynamodb-table.ts';
import { StoreError } from '#shared/store/store.ts';
import { systemClock } from '#shared/time/clock.ts';
import { CliError } from './command.ts';
import { deployedFleet } from './deployed-fleet.ts';
import { localFleet } from './local-fleet.ts';
import { createProgram } from './program.ts';
import { storedHistory } from './stored-history.ts';

/** Whatever goes wrong by the operator's hand is one of these, with a message made for the operator. */
const OPERATOR_ERRORS = [ApiError, CliError, OrderError, PolicyError, StoreError];

const program = createProgram({
  registry: (tableName) =>
    new DynamoDbClusterRegistry(
      new DynamoDbTable({ client: new DynamoDBClient(CLIENT_SETTINGS), tableName }),
    ),
  history: storedHistory,
  fleet: ({ table, state }) =>
    state === undefined ? deployedFleet(table, systemClock) : localFleet(state, systemClock),
  connect: connector({ aws: new AwsClients(), clock: systemClock, localContext: localContextConnection }),
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
