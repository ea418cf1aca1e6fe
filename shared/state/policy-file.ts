import { readFileSync } from 'node:fs';
import { systemErrorCode } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { PolicyError, parsePolicyDocument } from './policy-document.ts';

/**
 * Returns the text of a file with a policy document. Throws a `PolicyError` that names the file if `parse` rejects
 * the text.
 */
export function readPolicyFile(path: string, parse: (text: string) => unknown = parsePolicyDocument): string {
  const text = textOf(path);
  try {
    parse(text);
    return text;
  } catch (error) {
    throw namingFile(path, error);
  }
}

/** Returns a `PolicyError` that names its file. Returns any other error unchanged. */
export const namingFile = (path: string, error: unknown): unknown =>
  error instanceof PolicyError ? new PolicyError(`${path}: ${error.message}`) : error;

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new PolicyError(
      `Can't read the policy ${path} (${systemErrorCode(error)}). Specify a readable file.`,
    );
  }
}
