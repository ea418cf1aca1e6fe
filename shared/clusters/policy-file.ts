import { readFileSync } from 'node:fs';
import { systemErrorCode } from '#shared/kubernetes/kubeconfig-file.ts';
import { PolicyError, parsePolicyDocument } from './policy-document.ts';

/** The text of a file that holds a policy document. Throws `PolicyError`, which names the file, for any other. */
export function readPolicyFile(path: string): string {
  const text = textOf(path);
  try {
    parsePolicyDocument(text);
    return text;
  } catch (error) {
    throw error instanceof PolicyError ? new PolicyError(`${path}: ${error.message}`) : error;
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new PolicyError(
      `The policy ${path} cannot be read (${systemErrorCode(error)}): name a file that is there and may be read.`,
    );
  }
}
