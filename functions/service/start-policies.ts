import type { ClusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Policy } from '#shared/eviction/policy.ts';
import { type Need, requiredUnder } from '#shared/kubernetes/permissions.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import type { Operator } from '#shared/state/operator.ts';
import { PolicyError, parsePolicyDocument } from '#shared/state/policy-document.ts';
import { applyPolicyFile, type FileApplierDeps, namingFile, policyFile } from '#shared/state/policy-file.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';

/** Policy of a cluster that the command line enforces. It is recognized by its text. */
const ENFORCED = '# By npm start, for want of another policy.\nmode: enforce\n';

/** Policies that the command line sets for all clusters. */
export interface ChosenPolicies {
  /** Enforces clusters that have no policy. */
  readonly enforce: boolean;
  /** Path of a policy document. Absent: previously applied policies remain. */
  readonly file?: string | undefined;
}

export interface StartPoliciesDeps {
  readonly operator: Operator;
  readonly rulesStore: FileApplierDeps['rulesStore'];
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Returns the permissions that a cluster needs under its policy. The command line's policies count before they are
 * applied, and beside a policy that they may not replace. Throws a `PolicyError` that names the file if it is invalid.
 */
export function neededPermissions(
  { enforce, file }: ChosenPolicies,
  rulesStore: Pick<FileApplierDeps['rulesStore'], 'read'>,
): (cluster: ClusterName) => Promise<readonly Need[]> {
  const text = file === undefined ? undefined : policyFile(file).text;
  const chosen = text === undefined ? [] : [parsePolicyDocument(text)];
  const otherwise: Policy = enforce ? { ...DEFAULT_POLICY, mode: 'enforce' } : DEFAULT_POLICY;
  return async (cluster) => {
    const { policy } = (await rulesStore.read(cluster)).orders;
    const applied = policy && ![ENFORCED, text].includes(policy.text) ? [...chosen, policy.read] : chosen;
    return (applied.length > 0 ? applied : [otherwise]).flatMap(requiredUnder);
  };
}

/**
 * Applies the policies of the command line, as an operator would, and follows changes of their file. A file
 * is applied once: later changes by operators survive restarts, until the file changes.
 */
export class StartPolicies {
  readonly #chosen: ChosenPolicies;
  readonly #clusters: readonly ClusterName[];
  readonly #deps: StartPoliciesDeps;
  /** Content of the file when it was last read without an error. */
  #text: string | undefined;
  /** Error of the last read, if any. */
  #mistake: string | undefined;

  constructor(chosen: ChosenPolicies, clusters: readonly ClusterName[], deps: StartPoliciesDeps) {
    this.#chosen = chosen;
    this.#clusters = clusters;
    this.#deps = deps;
  }

  /**
   * Applies the policies in a process that runs alone. The file is applied unless it was the last file that
   * was applied. Rejects with `PolicyError` if the file is invalid, with `OperatorError`, or with
   * `StoreError`.
   */
  apply(): Promise<void> {
    return this.#apply(false);
  }

  async #apply(unlessOlder: boolean): Promise<void> {
    const { file, enforce } = this.#chosen;
    if (file !== undefined) await this.#applyFile(file, unlessOlder);
    const { operator, rulesStore } = this.#deps;
    for (const cluster of this.#clusters) {
      const { policy } = (await rulesStore.read(cluster)).orders;
      if (enforce && !policy) await perform({ kind: 'apply-policy', cluster, text: ENFORCED }, operator);
      if (!enforce && policy?.text === ENFORCED)
        await perform({ kind: 'withdraw-policy', cluster }, operator);
    }
  }

  /**
   * Does the same as `apply` in one of several processes. Each of them has a file, and may have started long
   * ago.
   * - A file that is older than the file that another process applied is ignored.
   * - An error in the file doesn't prevent evictions: the previously applied policy remains.
   *
   * Rejects with `OperatorError` or `StoreError`.
   */
  resume(): Promise<void> {
    return this.#unlessMistaken(() => this.#apply(true));
  }

  /**
   * Applies the file if it changed while this process runs, which makes it the newest. An error in the file
   * is logged once, and the previously applied policy remains.
   */
  async reread(): Promise<void> {
    const { file } = this.#chosen;
    // A file that was never read without error may be as old as this process.
    const unlessOlder = this.#text === undefined;
    if (file !== undefined) await this.#unlessMistaken(() => this.#applyFile(file, unlessOlder));
  }

  async #unlessMistaken(apply: () => Promise<void>): Promise<void> {
    try {
      await apply();
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
      if (error.message !== this.#mistake) this.#deps.log.warn('policy.invalid', { error });
      this.#mistake = error.message;
    }
  }

  async #applyFile(path: string, unlessOlder: boolean): Promise<void> {
    const file = policyFile(path);
    if (file.text === this.#text) {
      this.#mistake = undefined;
      return;
    }
    const { operator, rulesStore, clock, log } = this.#deps;
    const deps = { rulesStore, clock, actor: operator.actor };
    for (const cluster of this.#clusters) {
      const outcome = await applyPolicyFile(deps, cluster, file, { unlessOlder }).catch((error: unknown) => {
        throw namingFile(path, error);
      });
      if (outcome === 'applied')
        log.info('policy.applied', { cluster, mode: parsePolicyDocument(file.text).mode });
      if (outcome === 'kept' || outcome === 'older') {
        const { policy } = (await rulesStore.read(cluster)).orders;
        const mode = (policy?.read ?? DEFAULT_POLICY).mode;
        log.info('policy.kept', { cluster, mode, file: outcome === 'older' ? 'older' : 'unchanged' });
      }
    }
    this.#text = file.text;
    this.#mistake = undefined;
  }
}
