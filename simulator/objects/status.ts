import type * as z from 'zod';

/** The fault of one field in a `Status`. */
export interface StatusCause {
  readonly reason: string;
  readonly message: string;
  readonly field?: string;
}

interface StatusDetails {
  readonly name?: string;
  readonly kind?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** An error in the real API server's words wherever clients are known to read them. */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  /** The HTTP status. */
  readonly code: number;
  readonly reason: string;
  readonly #details: StatusDetails | undefined;

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.#details = details;
  }

  /** The delay before the client may try again, if known. */
  get retryAfterSeconds(): number | undefined {
    return this.#details?.retryAfterSeconds;
  }

  /** Returns the `v1.Status` for the client. */
  body(): object {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      ...(this.reason === '' ? {} : { reason: this.reason }),
      ...(this.#details === undefined ? {} : { details: this.#details }),
      code: this.code,
    };
  }
}

export const badRequest = (message: string) => new StatusError(400, 'BadRequest', message);

export const forbidden = (resource: string, name: string, why: string) =>
  new StatusError(403, 'Forbidden', `${resource} "${name}" is forbidden: ${why}`, { name, kind: resource });

export const notFound = (resource: string, name: string) =>
  new StatusError(404, 'NotFound', `${resource} "${name}" not found`, { name, kind: resource });

export const alreadyExists = (resource: string, name: string) =>
  new StatusError(409, 'AlreadyExists', `${resource} "${name}" already exists`, { name, kind: resource });

export const conflict = (resource: string, name: string, why: string) =>
  new StatusError(409, 'Conflict', `Operation cannot be fulfilled on ${resource} "${name}": ${why}`, {
    name,
    kind: resource,
  });

export const invalid = (kind: string, name: string, causes: readonly StatusCause[]) => {
  const faults = causes.map(({ field, message }) => (field === undefined ? message : `${field}: ${message}`));
  const list = faults.length === 1 ? faults[0] : `[${faults.join(', ')}]`;
  return new StatusError(422, 'Invalid', `${kind} "${name}" is invalid: ${list}`, { name, kind, causes });
};

/** Returns the error for a version, of a watch or of a list's continuation, that is no longer remembered. */
export const expired = (message: string) => new StatusError(410, 'Expired', message);

export const tooLargeVersion = (version: number, current: number) =>
  new StatusError(504, 'Timeout', `Timeout: Too large resource version: ${version}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });

export const methodNotAllowed = () =>
  new StatusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');

/** Returns the first fault and its place: `spec.taints.0.key: Invalid input: …`. */
export function schemaFault({ issues: [issue] }: z.ZodError): string {
  const path = issue?.path.join('.') ?? '';
  return `${path === '' ? '' : `${path}: `}${issue?.message ?? 'is invalid'}`;
}
