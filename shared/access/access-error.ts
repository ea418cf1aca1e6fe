/** A cluster's address or credentials are missing; the message is a clause with the reason. */
export class AccessError extends Error {
  override readonly name = 'AccessError';
}

const REFUSED = new Set(['AccessDenied', 'AccessDeniedException']);
const NO_CREDENTIALS = new Set(['CredentialsProviderError', 'TokenProviderError']);

/** `action` as IAM names it. AWS messages contain names and ARNs, but no secret. */
export function awsAccessError(error: unknown, action: string): AccessError {
  if (error instanceof AccessError) return error;
  const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) };
  return new AccessError(clause(name, message.replace(/\s+/g, ' ').replace(/\.$/, ''), action), {
    cause: error,
  });
}

function clause(name: string, message: string, action: string): string {
  if (REFUSED.has(name)) return `AWS denied ${action} (${message}); grant it`;
  if (NO_CREDENTIALS.has(name)) {
    return `there are no AWS credentials for ${action} (${message}); give the process a role, a profile or a key`;
  }
  if (name === 'ResourceNotFoundException') {
    return `${action} found nothing (${message}); check its name, region and account`;
  }
  return `${action} failed (${name}: ${message})`;
}
