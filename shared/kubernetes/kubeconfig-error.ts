/** A kubeconfig, or what it refers to, is of no use; the message says what to change and holds no secret. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';
}

/** The code of a failed system call (`ENOENT`, `EACCES`); "" when it was none. */
export const systemErrorCode = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';
