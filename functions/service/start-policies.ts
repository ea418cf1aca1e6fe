import type { ClusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import type { Operator } from '#shared/state/operator.ts';
import { formerNames, PolicyError, parsePolicyDocument } from '#shared/state/policy-document.ts';
import { namingFile } from '#shared/state/policy-file.ts';
import { applyPolicyFile, type FileApplierDeps, policyFile } from '#shared/state/policy-of-file.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';

/** The policy of a cluster that the command line has enforced; it is known again by its text. */
const ENFORCED = '# By npm start, for want of another policy.\nmode: enforce\n';

/** What the command line says of all clusters. */
export interface ChosenPolicies {
  /** Whether clusters are enforced that have no policy. */
  readonly enforce: boolean;
  /** The path of a policy document; absent: what was applied before stands. */
  readonly file?: string | undefined;
}

export interface StartPoliciesDeps {
  readonly operator: Pick<Operator, 'applyPolicy' | 'withdrawPolicy' | 'who'>;
  readonly rulesStore: FileApplierDeps['rulesStore'];
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The policies that the command line asks for, applied as an operator would, and kept up with their file. A file is applied once: what operators
 * said since then stands over restarts, until the file changes.
 */
export class StartPolicies {
  readonly #chosen: ChosenPolicies;
  readonly #clusters: readonly ClusterName[];
  readonly #deps: StartPoliciesDeps;
  /** What the file held when it was last read without a mistake. */
  #text: string | undefined;
  /** What was wrong with it, if it was. */
  #mistake: string | undefined;

  constructor(chosen: ChosenPolicies, clusters: readonly ClusterName[], deps: StartPoliciesDeps) {
    this.#chosen = chosen;
    this.#clusters = clusters;
    this.#deps = deps;
  }

  /**
   * By a process that is alone: its file holds if it is not the one that was applied last. Rejects with `PolicyError` for what is wrong with
   * the file, with `OperatorError`, or with `StoreError`.
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
      if (enforce && !policy) await operator.applyPolicy(cluster, ENFORCED);
      if (!enforce && policy?.text === ENFORCED) await operator.withdrawPolicy(cluster);
    }
  }

  /**
   * What `apply` does, by one of several processes, which each have a file, and which may have been begun long ago: a file that was
   * written before the one that another of them applied is left, and a mistake that came into the file since keeps nobody from
   * evicting; what was applied before stands. Rejects with `OperatorError` or `StoreError`.
   */
  resume(): Promise<void> {
    return this.#unlessMistaken(() => this.#apply(true));
  }

  /** Applies the file if it changed under this process, which makes it the newest. A mistake in it is told once, and what was applied before stands. */
  async reread(): Promise<void> {
    const { file } = this.#chosen;
    // One that it never read before may be as old as this process.
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
    const deps = { rulesStore, clock, who: operator.who };
    const settings = formerNames(file.text);
    if (settings.length > 0) log.warn('policy.renamed-settings', { settings });
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
