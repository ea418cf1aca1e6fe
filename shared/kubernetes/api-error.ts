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

  /** 404, or the UID precondition failed: the pod we meant is no more. */
  get gone(): boolean {
    return this.status === 404 || this.status === 409;
  }
}
