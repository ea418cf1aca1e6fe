import { CommanderError } from 'commander';
import { ForeignFileError } from '#shared/files/owner-only.ts';
import { operatorText } from '#shared/files/system-error.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { LabelSelectorError } from '#shared/operations/ask/label-selector.ts';
import { FleetError, UsageError } from '#shared/operations/fleet/fleet.ts';
import { OperatorError } from '#shared/state/operator.ts';
import { PolicyError } from '#shared/state/policy-document.ts';
import { QueueError } from '#shared/state/sender.ts';
import { StoreError } from '#shared/state/store.ts';
import { escapeForDisplay, shownLines } from '#shared/text/escape-for-display.ts';
import { type CliDeps, CliError } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { splitNames } from './explain.ts';
import { createProgram } from './program.ts';

/** Errors that the operator can cause. Their messages are written for the operator. */
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

/**
 * Errors are printed. Output takes the place of a progress line. Control characters in names are escaped, so that they
 * don't act on the terminal.
 */
export async function run(argv: readonly string[], deps: Omit<CliDeps, 'exitWith'>): Promise<ExitCode> {
  let code: ExitCode = EXIT.fine;
  const cleared = (text: string): string => {
    deps.progress();
    return shownLines(text);
  };
  const complain = (text: string) => deps.complain(cleared(text));
  const program = createProgram({
    ...deps,
    print: (text) => deps.print(cleared(text)),
    complain,
    watch: (show) => deps.watch(async () => cleared(await show())),
    exitWith: (found) => {
      code = found;
    },
  });
  try {
    await program.parseAsync(splitNames(argv), { from: 'user' });
    return code;
  } catch (error) {
    // Commander has already printed the error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.usage;
    const text = operatorText(error, OPERATOR_ERRORS);
    complain(`taintward: ${text === undefined ? (error as Error).stack : escapeForDisplay(text)}\n`);
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  } finally {
    deps.progress();
  }
}
