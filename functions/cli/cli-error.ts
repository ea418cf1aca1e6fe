/** The operator asked for something that cannot be done; the message is one sentence that says what to do. */
export class CliError extends Error {
  override readonly name = 'CliError';
}
