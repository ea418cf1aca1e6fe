import { Command, InvalidArgumentError, Option } from 'commander';
import { DEFAULT_NAMESPACE } from '#functions/in-cluster/kubernetes-state.ts';
import { DEFAULT_TABLE } from '#functions/operator/open-fleet.ts';
import { VERSION } from '#shared/version.ts';
import { addAuditCommand } from './audit.ts';
import { addClustersCommand } from './clusters.ts';
import { type CliDeps, CliError } from './command.ts';
import { addCompletion } from './completion.ts';
import { addConsoleCommand } from './console.ts';
import { addDeadLettersCommand } from './dead-letters.ts';
import { addDoctorCommand } from './doctor.ts';
import { EXIT_CODES_TEXT } from './exit-codes.ts';
import { addExplainCommand } from './explain.ts';
import { addHistoryCommand } from './history.ts';
import { addHoldCommands } from './holds.ts';
import { addLintCommand } from './lint.ts';
import { addPendingCommand } from './pending.ts';
import { addPolicyCommand } from './policy.ts';
import { addRestoreCommand } from './restore.ts';
import { addRetryCommand } from './retry.ts';
import { addStatusCommand } from './status.ts';
import { addStopCommands } from './stops.ts';
import { addTakeoverCommand } from './takeover/command.ts';
import { addWhatIfCommand } from './what-if.ts';

/** Within what a mistaken word is said to be: all but the end of it, and of what Commander suggests, is of whoever said it. */
const BROKEN_LINE = /\n(?!\(Did you mean |$)/g;

/** The operator's command line. Every action rejects with an error whose message is for the operator. */
export function createProgram(deps: CliDeps): Command {
  const program = new Command('taintward')
    // Whoever runs it decides how the process ends.
    .exitOverride()
    .configureOutput({
      writeOut: (text) => deps.print(text),
      writeErr: (text) => deps.complain(text),
      outputError: (text, write) => write(text.replace(BROKEN_LINE, '\\u000a')),
    })
    .version(VERSION)
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError('Behind the command, --help shows how it is used, with examples.')
    .description(
      'Operates Taintward. AWS account and region are those of the AWS SDK: AWS_PROFILE, AWS_REGION.',
    )
    .addOption(
      new Option(
        '--state <dir>',
        'the state directory of an npm start (default: that of one which runs in this directory)',
      )
        .env('TAINTWARD_STATE')
        .argParser(notEmpty('a directory')),
    )
    .addOption(
      new Option('--table <name>', `the table that the stack made (default: ${DEFAULT_TABLE})`)
        .env('TAINTWARD_TABLE')
        .argParser(notEmpty('a table')),
    )
    .addOption(
      new Option(
        '--in-cluster-of <context>',
        'the cluster of this context of the kubeconfig, where all is kept in it',
      ).argParser(notEmpty('a context')),
    )
    .addOption(
      new Option(
        '--in-cluster-namespace <name>',
        `with --in-cluster-of: where in it (default: ${DEFAULT_NAMESPACE})`,
      ).argParser(notEmpty('a namespace')),
    )
    .addHelpText('after', EXIT_CODES_TEXT)
    .hook('preAction', oneFleet);
  addExplainCommand(program, deps);
  addWhatIfCommand(program, deps);
  addPendingCommand(program, deps);
  addHistoryCommand(program, deps);
  addStatusCommand(program, deps);
  addStopCommands(program, deps);
  addHoldCommands(program, deps);
  addRetryCommand(program, deps);
  addPolicyCommand(program, deps);
  addAuditCommand(program, deps);
  addTakeoverCommand(program, deps);
  addClustersCommand(program, deps);
  addDeadLettersCommand(program, deps);
  addRestoreCommand(program, deps);
  addDoctorCommand(program, deps);
  addLintCommand(program, deps);
  addConsoleCommand(program, deps);
  addCompletion(program, deps);
  return program;
}

const notEmpty = (what: string) => (text: string) => {
  if (text !== '') return text;
  throw new InvalidArgumentError(`name ${what}, or leave it out.`);
};

/** What is said on the command line goes before what stands in the environment. */
function oneFleet(program: Command): void {
  const [state, table] = ['state', 'table'].map((name) => program.getOptionValueSource(name));
  if (program.getOptionValueSource('inClusterOf') === 'cli' && (state === 'cli' || table === 'cli')) {
    throw new CliError('--in-cluster-of cannot stand beside --state or --table: say which of them is meant.');
  }
  if (state === undefined || table === undefined) return;
  if (state === 'cli' && table === 'cli') {
    throw new CliError('--state cannot stand beside --table: say which of the two is meant.');
  }
  program.setOptionValue(table === 'cli' ? 'state' : 'table', undefined);
}
