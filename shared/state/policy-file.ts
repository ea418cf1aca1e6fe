import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { systemErrorCode } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { policyOrders, repeatChange } from './operator.ts';
import { PolicyError, parsePolicyDocument } from './policy-document.ts';
import type { AppliedFile, FileRulesStore, OperatorControls } from './rules-store.ts';

/** Returns the text of a policy file. Throws a `PolicyError` that names the file if `parse` rejects the text. */
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

export interface FileApplierDeps {
  readonly rulesStore: Pick<FileRulesStore, 'read' | 'appliedFile' | 'noteFile'>;
  readonly clock: Clock;
  readonly actor: string;
}

export interface PolicyFile extends AppliedFile {
  readonly text: string;
}

/** Throws a `PolicyError` that names the file. */
export function policyFile(path: string): PolicyFile {
  const text = readPolicyFile(path);
  return { text, hash: createHash('sha256').update(text).digest('hex'), writtenAt: writtenAt(path) };
}

/** A file that no longer exists has the earliest time. */
const writtenAt = (path: string): EpochMs =>
  Math.floor(statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);

/**
 * The result of applying a file:
 * - `applied`: its policy is now in force.
 * - `unchanged`: its policy was already in force.
 * - `kept`: the file was applied before, and a later change by an operator stays in force.
 * - `older`: another process applied a file that was written later.
 */
export type FileOutcome = 'applied' | 'unchanged' | 'kept' | 'older';

/**
 * Applies a policy file that differs from the one applied last; until it changes, operators' changes stay in force.
 * `unlessOlder`: not if it was written before, as by a process about to be replaced. Rejects with `PolicyError`,
 * `OperatorError` and `StoreError`.
 */
export async function applyPolicyFile(
  { rulesStore, clock, actor }: FileApplierDeps,
  cluster: ClusterName,
  file: PolicyFile,
  { unlessOlder }: { readonly unlessOlder: boolean },
): Promise<FileOutcome> {
  return repeatChange(async () => {
    const { orders } = await rulesStore.read(cluster);
    const found = await rulesStore.appliedFile(cluster);
    const now = clock.now();
    const decided = decide(file, orders.policy, found, unlessOlder);
    if (decided.noted === false) return { result: decided.outcome, change: 'changed' };
    const noted = {
      hash: file.hash,
      writtenAt: Math.max(Math.min(file.writtenAt, now), (found?.writtenAt ?? -1) + 1),
    };
    const next = decided.outcome === 'applied' ? policyOrders(orders, file.text, now) : undefined;
    const change = next && {
      next: next.next,
      entry: { actor, at: now, cluster, ...next.entry },
    };
    return {
      result: decided.outcome,
      change: await rulesStore.noteFile(cluster, { orders, file: found }, noted, change),
    };
  });
}

/** `noted`: reports whether to record this file as the one applied last. */
function decide(
  { text, hash, writtenAt: at }: PolicyFile,
  current: OperatorControls['policy'],
  found: AppliedFile | undefined,
  unlessOlder: boolean,
): { readonly outcome: FileOutcome; readonly noted: boolean } {
  const isSame = current?.text === text;
  if (found?.hash === hash) return { outcome: isSame ? 'unchanged' : 'kept', noted: false };
  if (found && unlessOlder && at < found.writtenAt) return { outcome: 'older', noted: false };
  if (isSame) return { outcome: 'unchanged', noted: true };
  return { outcome: 'applied', noted: true };
}
