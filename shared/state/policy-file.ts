import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemErrorCode } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { PolicyError } from './policy-document.ts';
import { parsePolicyOnce } from './stored-rules.ts';

/** A file or object that owns the policies of all clusters of a process. */
export interface PolicySource {
  /** Its name, as operators know it: "/etc/policy.yaml". */
  readonly owner: string;
  /** The interval at which it is read. */
  readonly everyMs: number;
  /**
   * Resolves with its policy document. `undefined`: it does not exist, so commands own the policies. Rejects with
   * `PolicyError`, which names the source, or with `StoreError`.
   */
  read(): Promise<string | undefined>;
}

/** A change takes effect within 5 s. */
const FILE_MS = 1_000;

export const policyFile = (path: string): PolicySource => ({
  owner: resolve(path),
  everyMs: FILE_MS,
  read: async () => readPolicyFile(path),
});

/** Returns the text of a policy file. Throws a `PolicyError` that names the file if `parse` rejects the text. */
export const readPolicyFile = (path: string, parse: (text: string) => unknown = parsePolicyOnce): string =>
  checkedPolicy(path, textOf(path), parse);

/** Returns the text. Throws a `PolicyError` that names its source if `parse` rejects the text. */
export function checkedPolicy(
  source: string,
  text: string,
  parse: (text: string) => unknown = parsePolicyOnce,
): string {
  try {
    parse(text);
    return text;
  } catch (error) {
    throw error instanceof PolicyError ? new PolicyError(`${source}: ${error.message}`) : error;
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new PolicyError(
      `Can't read the policy ${path} (${systemErrorCode(error)}). Specify a readable file.`,
    );
  }
}
