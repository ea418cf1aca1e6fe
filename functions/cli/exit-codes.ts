/** Exit codes of commands, for scripts. */
export const EXIT = {
  /** The request was done or shown. */
  fine: 0,
  /** The request could not be done, or was rejected. Standard error holds the reason. */
  failed: 1,
  /**
   * The result was shown, and an action is required or something breaks: doctor, status, and what-if. Something would
   * change: apply --dry-run and policy diff.
   */
  actionRequired: 2,
  /**
   * The result was shown, but parts of it are unknown. Used by explain, pending, and status, and by every command that
   * found only the state of a stopped `npm start`. Same value as `EX_UNAVAILABLE` in sysexits(3).
   */
  cannotKnow: 69,
  /** The command line is invalid. Same value as `EX_USAGE` in sysexits(3). */
  usage: 64,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Text for `--help`. */
export const EXIT_CODES_TEXT = `
Exit codes:
  ${EXIT.fine}   success
  ${EXIT.failed}   failure; standard error holds the cause
  ${EXIT.actionRequired}   an action is required, or something breaks: doctor, status, what-if; or something would change: apply --dry-run, policy diff
  ${EXIT.cannotKnow}  the state is unknown or may be outdated: explain, pending, status, and any command that used the state of a stopped npm start
  ${EXIT.usage}  invalid usage

Output is colored on terminals. To change that, set NO_COLOR or FORCE_COLOR.`;
