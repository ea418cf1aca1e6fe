/** A program that LocalStack needs is missing; the message names it, and the fix. */
export class MissingError extends Error {
  override readonly name = 'MissingError';
}
