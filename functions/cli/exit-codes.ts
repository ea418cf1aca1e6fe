/** How a command ends, for scripts. */
export const EXIT = {
  /** What was asked for was done, or shown. */
  fine: 0,
  /** It could not be done, or was refused; standard error says why. */
  failed: 1,
  /** It was shown, and something in it breaks or needs somebody: of doctor, lint, status and what-if. */
  needsYou: 2,
  /** It was shown, and not all of it is known: of status and pending. As sysexits(3) calls what is unavailable. */
  cannotKnow: 69,
  /** The command line cannot be read. As sysexits(3) has it. */
  usage: 64,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** For `--help`. */
export const EXIT_CODES_TEXT = `
Exit codes:
  ${EXIT.fine}   success
  ${EXIT.failed}   failure; standard error holds the cause
  ${EXIT.needsYou}   an action is required, or something breaks: doctor, lint, status, what-if
  ${EXIT.cannotKnow}  the state is unknown or may be outdated: pending, status
  ${EXIT.usage}  invalid usage

Output is colored on terminals. To change that, set NO_COLOR or FORCE_COLOR.`;
