import { text } from 'node:stream/consumers';
import { run } from '#functions/cli/run.ts';
import { AwsClients } from '#shared/access/aws-clients.ts';
import { connector } from '#shared/access/connect.ts';
import { openFleet } from '#shared/operations/fleet/open-fleet.ts';
import { systemClock } from '#shared/time/clock.ts';
import { plainOutput } from '#test/unit/cli/plain-output.ts';

/*
 * Runs one command line after the other from standard input, confirming all prompts. Fails with the first that fails.
 */
const lines: readonly (readonly string[])[] = JSON.parse(await text(process.stdin));
const connect = connector({ aws: new AwsClients(), clock: systemClock });
const fleetDeps = { clock: systemClock, connect, hint: () => undefined };
for (const argv of lines) {
  const { deps } = plainOutput();
  let complaint = '';
  const code = await run(argv, {
    ...deps,
    complain: (text) => {
      complaint += text;
    },
    fleet: (choice) => openFleet(choice, fleetDeps),
    live: async (choice) => openFleet(choice, fleetDeps),
    connect,
    clock: systemClock,
    confirm: async () => true,
  });
  // `status` ends with 2 when an action is required.
  if (code === 0 || code === 2) continue;
  process.stderr.write(`${argv.join(' ')}: ${complaint}\n`);
  process.exit(1);
}
process.exit(0);
