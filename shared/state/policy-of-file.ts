import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { policyOrders, repeatChange } from './operator.ts';
import { withMode } from './policy-document.ts';
import { readPolicyFile } from './policy-file.ts';
import type { AuditEntry, Change, OperatorControls, RulesStore } from './rules-store.ts';

/** Which text was applied last from the file of a policy. */
export interface AppliedFile {
  /** Of the text: SHA-256, in hex. */
  readonly hash: string;
  /** When that file was written; later with each text that is applied, whatever clocks say. */
  readonly writtenAt: EpochMs;
}

/** A rulebook of a service that may be started with the file of a policy. Every method rejects with `StoreError`. */
export interface FileRulesStore extends RulesStore {
  /** What was applied last from a file; `undefined`: nothing, or by a release that did not note it. */
  appliedFile(cluster: ClusterName): Promise<AppliedFile | undefined>;
  /** Notes `file` in place of the one that was `found`; and, both or neither, changes orders as `changeOrders` does. */
  noteFile(
    cluster: ClusterName,
    found: { readonly orders: OperatorControls; readonly file: AppliedFile | undefined },
    file: AppliedFile,
    change?: { readonly next: Omit<OperatorControls, 'revision'>; readonly entry: AuditEntry },
  ): Promise<Change>;
}

/** What applies a file. */
export interface FileApplierDeps {
  readonly rulesStore: Pick<FileRulesStore, 'read' | 'appliedFile' | 'noteFile'>;
  readonly clock: Clock;
  /** Who speaks, as the audit names them. */
  readonly who: string;
}

/** The file of a policy, as it is now. */
export interface PolicyFile extends AppliedFile {
  readonly text: string;
}

/** Reads the file. Throws `PolicyError`, which names it. */
export function policyFile(path: string): PolicyFile {
  const text = readPolicyFile(path);
  return { text, hash: createHash('sha256').update(text).digest('hex'), writtenAt: writtenAt(path) };
}

/** A file that is gone by now was written as long ago as can be. */
const writtenAt = (path: string): EpochMs =>
  Math.floor(statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);

/**
 * What became of a file:
 * - `applied`: its policy holds now.
 * - `unchanged`: its policy held already.
 * - `kept`: it was applied before, and what somebody said since stands.
 * - `older`: another process applied a file that was written later.
 */
export type FileOutcome = 'applied' | 'unchanged' | 'kept' | 'older';

/**
 * Has the policy of a file hold in a cluster if the file is another one than was applied last: what operators said since then stands
 * until it changes. `unlessOlder`: nor does one hold that was written before that one, as the file of a process that is about to be replaced.
 * Rejects with `PolicyError`, `OperatorError` and `StoreError`.
 */
export async function applyPolicyFile(
  { rulesStore, clock, who }: FileApplierDeps,
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
      entry: { who, at: now, cluster, ...next.entry },
    };
    return {
      result: decided.outcome,
      change: await rulesStore.noteFile(cluster, { orders, file: found }, noted, change),
    };
  });
}

/** `noted`: whether this file is to be known as the one that was applied last. */
function decide(
  { text, hash, writtenAt: at }: PolicyFile,
  standing: OperatorControls['policy'],
  found: AppliedFile | undefined,
  unlessOlder: boolean,
): { readonly outcome: FileOutcome; readonly noted: boolean } {
  const isSame = standing?.text === text;
  if (found?.hash === hash) return { outcome: isSame ? 'unchanged' : 'kept', noted: false };
  if (found && unlessOlder && at < found.writtenAt) return { outcome: 'older', noted: false };
  if (isSame) return { outcome: 'unchanged', noted: true };
  // An older release noted nothing, but what it applied may be paused.
  if (!found && standing && isPauseOf(standing, text)) return { outcome: 'kept', noted: true };
  return { outcome: 'applied', noted: true };
}

const isPauseOf = ({ text, read }: NonNullable<OperatorControls['policy']>, file: string): boolean =>
  read.mode === 'paused' && withMode(file, 'paused', read.pausedUntil) === text;
