import { Command, Help, InvalidArgumentError, Option } from 'commander';
import { UsageError } from '#shared/operations/fleet/fleet.ts';
import { DEFAULT_NAMESPACE } from '#shared/state/objects/kubernetes-state.ts';
import { VERSION } from '#shared/version.ts';
import { addApplyCommand } from './apply.ts';
import { addAuditCommand } from './audit.ts';
import { addClustersCommand } from './clusters.ts';
import type { CliDeps } from './command.ts';
import { addCompletion } from './completion.ts';
import { addConsoleCommand } from './console.ts';
import { addDeadLettersCommand } from './dead-letters.ts';
import { addDoctorCommand } from './doctor.ts';
import { EXIT_CODES_TEXT } from './exit-codes.ts';
import { addExplainCommand } from './explain.ts';
import { addHistoryCommand } from './history.ts';
import { addHoldCommands } from './holds.ts';
import { addPendingCommand } from './pending.ts';
import { addPolicyCommand } from './policy.ts';
import { addRetryCommand } from './retry.ts';
import { addStatusCommand } from './status.ts';
import { addStopCommands } from './stops.ts';
import { addTakeoverCommand } from './takeover/command.ts';
import { addTolerationsCommand } from './tolerations.ts';
import { addWhatIfCommand } from './what-if.ts';

/** Within a quoted, mistyped word; only the last line feed, and one before a suggestion, are Commander's. */
const BROKEN_LINE = /\n(?!\(Did you mean |$)/g;

/** Every action rejects with an error whose message is for the operator. */
export function createProgram(deps: CliDeps): Command {
  const program = new Command('taintward')
    // The caller decides how the process ends.
    .exitOverride()
    .configureOutput({
      writeOut: (text) => deps.print(text),
      writeErr: (text) => deps.complain(text),
      outputError: (text, write) => write(text.replace(BROKEN_LINE, '\\u000a')),
    })
    .version(VERSION)
    .configureHelp({
      showGlobalOptions: true,
      optionDescription(option) {
        const text = Help.prototype.optionDescription.call(this, option);
        return option.mandatory ? `${text} (required)` : text;
      },
    })
    .showHelpAfterError('For usage and examples, add --help to the command.')
    .summary('Operate Taintward')
    .description(
      'Operate Taintward. The AWS SDK selects the AWS account and region: AWS_PROFILE, AWS_REGION.',
    )
    .addOption(
      new Option(
        '--state-dir <dir>',
        'state directory of npm start (default: that of the service running in this directory)',
      )
        .env('TAINTWARD_STATE_DIR')
        .argParser(notEmpty('a directory')),
    )
    .addOption(new Option('--state <dir>').argParser(notEmpty('a directory')).hideHelp())
    // An alias.
    .on('option:state', (dir: string) => program.setOptionValueWithSource('stateDir', dir, 'cli'))
    .addOption(
      new Option('--table <name>', 'DynamoDB table of the stack: its output TableName')
        .env('TAINTWARD_TABLE')
        .argParser(notEmpty('a table')),
    )
    .addOption(
      new Option(
        '--in-cluster-context <context>',
        'kubeconfig context of a cluster that runs Taintward in the cluster',
      ).argParser(notEmpty('a context')),
    )
    .addOption(
      new Option(
        '--in-cluster-namespace <name>',
        `namespace of Taintward, with --in-cluster-context (default: ${DEFAULT_NAMESPACE})`,
      ).argParser(notEmpty('a namespace')),
    )
    .addHelpText('after', EXIT_CODES_TEXT)
    .hook('preAction', oneFleet);
  program.commandsGroup('Inspect:');
  addStatusCommand(program, deps);
  addPendingCommand(program, deps);
  addExplainCommand(program, deps);
  addHistoryCommand(program, deps);
  addWhatIfCommand(program, deps);
  addDoctorCommand(program, deps);
  program.commandsGroup('Control:');
  addStopCommands(program, deps);
  addHoldCommands(program, deps);
  addRetryCommand(program, deps);
  program.commandsGroup('Configure:');
  addApplyCommand(program, deps);
  addClustersCommand(program, deps);
  addPolicyCommand(program, deps);
  addTolerationsCommand(program, deps);
  addTakeoverCommand(program, deps);
  addAuditCommand(program, deps);
  program.commandsGroup('Maintain:');
  addDeadLettersCommand(program, deps);
  addConsoleCommand(program, deps);
  describe(program);
  addCompletion(program, deps);
  return program;
}

/** Describes commands that have only a summary. */
function describe(command: Command): void {
  if (command.description() === '') command.description(`${command.summary()}.`);
  for (const each of command.commands) describe(each);
}

const notEmpty = (what: string) => (text: string) => {
  if (text !== '') return text;
  throw new InvalidArgumentError(`Specify ${what}, or omit the option.`);
};

/** Command-line options take precedence over the environment. */
function oneFleet(program: Command): void {
  const [state, table] = ['stateDir', 'table'].map((name) => program.getOptionValueSource(name));
  if (program.getOptionValueSource('inClusterContext') === 'cli' && (state === 'cli' || table === 'cli')) {
    throw new UsageError(
      '--in-cluster-context, --state-dir, and --table are mutually exclusive. Specify one.',
    );
  }
  if (state === undefined || table === undefined) return;
  if (state === table) {
    const names = state === 'cli' ? '--state-dir and --table' : 'TAINTWARD_STATE_DIR and TAINTWARD_TABLE';
    throw new UsageError(`${names} are mutually exclusive. Specify one.`);
  }
  program.setOptionValue(table === 'cli' ? 'stateDir' : 'table', undefined);
}
