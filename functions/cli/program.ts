import { Command, InvalidArgumentError, Option } from 'commander';
import { VERSION } from '#shared/version.ts';
import { addAuditCommand } from './audit.ts';
import { addClustersCommand } from './clusters.ts';
import type { CliDeps } from './command.ts';
import { addHistoryCommand } from './history.ts';
import { addHoldCommands } from './holds.ts';
import { addPendingCommand } from './pending.ts';
import { addPolicyCommand } from './policy.ts';
import { addRetryCommand } from './retry.ts';
import { addStopCommands } from './stops.ts';
import { addTakeoverCommand } from './takeover/command.ts';

/** What the stack names its table unless it is configured otherwise. */
const DEFAULT_TABLE = 'taintward';

/** The operator's command line. Every action rejects with an error whose message is for the operator. */
export function createProgram(deps: CliDeps): Command {
  const program = new Command('taintward')
    .version(VERSION)
    .configureHelp({ showGlobalOptions: true })
    .description(
      'Operates Taintward. AWS account and region are those of the AWS SDK: AWS_PROFILE, AWS_REGION.',
    )
    .addOption(
      new Option('--table <name>', 'the table that the stack made')
        .env('TAINTWARD_TABLE')
        .default(DEFAULT_TABLE),
    )
    .addOption(
      new Option('--state <dir>', 'in place of a table: the state directory of an npm start').argParser(
        (dir: string) => {
          if (dir === '') throw new InvalidArgumentError('name a directory, or leave it out.');
          return dir;
        },
      ),
    );
  addClustersCommand(program, deps);
  addHistoryCommand(program, deps);
  addPolicyCommand(program, deps);
  addPendingCommand(program, deps);
  addStopCommands(program, deps);
  addHoldCommands(program, deps);
  addAuditCommand(program, deps);
  addRetryCommand(program, deps);
  addTakeoverCommand(program, deps);
  return program;
}
