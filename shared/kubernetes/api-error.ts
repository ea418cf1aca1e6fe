/** Why an API server did not do what was asked. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status; 0 when no answer came (unreachable, reset, timed out), or none that can be relied on. */
  readonly status: number;
  /** `Status.reason`, for example `Expired`, `Conflict`, `Forbidden`; "" when unknown. */
  readonly reason: string;
  /** From the `Retry-After` header. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    message: string,
    status: number,
    reason = '',
    retryAfterSeconds?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.status = status;
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** A call was not sent in time, and so not at all. */
export class LateCallError extends Error {
  override readonly name = 'LateCallError';
}
