import { readFileSync } from 'node:fs';
import { systemErrorCode } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { PolicyError, parsePolicyDocument } from './policy-document.ts';

/** The text of a file that holds a policy document. Throws `PolicyError`, which names the file, for what `parse` refuses. */
export function readPolicyFile(path: string, parse: (text: string) => unknown = parsePolicyDocument): string {
  const text = textOf(path);
  try {
    parse(text);
    return text;
  } catch (error) {
    throw namingFile(path, error);
  }
}

/** A `PolicyError` that names the file at fault; any other error as it is. */
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
