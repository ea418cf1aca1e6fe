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
  ${EXIT.fine}   done, or shown
  ${EXIT.failed}   it could not be done; standard error says why
  ${EXIT.needsYou}   shown, and something breaks or needs you: doctor, lint, status, what-if
  ${EXIT.cannotKnow}  shown as far as it is known, and something cannot be known now: pending, status
  ${EXIT.usage}  the command line cannot be read

Output is coloured on a terminal; NO_COLOR and FORCE_COLOR say otherwise.`;
