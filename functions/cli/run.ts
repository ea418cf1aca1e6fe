import { CommanderError } from 'commander';
import { ForeignFileError } from '#shared/files/owner-only.ts';
import { operatorText } from '#shared/files/system-error.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { FleetError, UsageError } from '#shared/operations/fleet/fleet.ts';
import { LabelSelectorError } from '#shared/operations/takeover/label-selector.ts';
import { OperatorError } from '#shared/state/operator.ts';
import { PolicyError } from '#shared/state/policy-document.ts';
import { QueueError } from '#shared/state/sender.ts';
import { StoreError } from '#shared/state/store.ts';
import { escapeForDisplay, shownLines } from '#shared/text/escape-for-display.ts';
import { type CliDeps, CliError } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { createProgram } from './program.ts';

/** Whatever goes wrong by the operator's hand is one of these, with a message made for the operator. */
const OPERATOR_ERRORS = [
  ApiError,
  CliError,
  FleetError,
  ForeignFileError,
  KubeconfigError,
  LabelSelectorError,
  OperatorError,
  PolicyError,
  QueueError,
  StoreError,
];

/** Does what a command line says, and tells how it ended. What went wrong is said. Whatever is named how, it acts on no terminal. */
export async function run(argv: readonly string[], deps: Omit<CliDeps, 'exitWith'>): Promise<ExitCode> {
  let code: ExitCode = EXIT.fine;
  const complain = (text: string) => deps.complain(shownLines(text));
  const program = createProgram({
    ...deps,
    print: (text) => deps.print(shownLines(text)),
    complain,
    watch: (look) => deps.watch(async () => shownLines(await look())),
    exitWith: (found) => {
      code = found;
    },
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
    return code;
  } catch (error) {
    // Commander has said it.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage;
    deps.progress();
    const text = operatorText(error, OPERATOR_ERRORS);
    complain(`taintward: ${text === undefined ? (error as Error).stack : escapeForDisplay(text)}\n`);
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  } finally {
    deps.progress();
  }
}
