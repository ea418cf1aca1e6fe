/** Exit codes of commands, for scripts. {@link EXIT_CODES_TEXT} has their meanings. */
export const EXIT = {
  fine: 0,
  failed: 1,
  actionRequired: 2,
  /** Same value as `EX_UNAVAILABLE` in sysexits(3). */
  cannotKnow: 69,
  /** Same value as `EX_USAGE` in sysexits(3). */
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
