import type { Operator } from '#shared/clusters/operator.ts';
import { PolicyError, parsePolicyDocument } from '#shared/clusters/policy-document.ts';
import { namingFile, readPolicyFile } from '#shared/clusters/policy-file.ts';
import type { Rulebook } from '#shared/clusters/rulebook.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Log } from '#shared/telemetry/log.ts';

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
  readonly operator: Pick<Operator, 'applyPolicy' | 'withdrawPolicy'>;
  readonly rulebook: Pick<Rulebook, 'read'>;
  readonly log: Log;
}

/** The policies that the command line asks for, applied as an operator would, and kept up with their file. */
export class StartPolicies {
  readonly #chosen: ChosenPolicies;
  readonly #clusters: readonly ClusterName[];
  readonly #deps: StartPoliciesDeps;
  /** What the file last held, or what was wrong with it. */
  #seen: string | undefined;

  constructor(chosen: ChosenPolicies, clusters: readonly ClusterName[], deps: StartPoliciesDeps) {
    this.#chosen = chosen;
    this.#clusters = clusters;
    this.#deps = deps;
  }

  /** Rejects with `PolicyError` for what is wrong with the file, with `OrderError`, or with `StoreError`. */
  async apply(): Promise<void> {
    const { file, enforce } = this.#chosen;
    if (file !== undefined) await this.#applyFile(file);
    const { operator, rulebook } = this.#deps;
    for (const cluster of this.#clusters) {
      const { policy } = (await rulebook.read(cluster)).orders;
      if (enforce && !policy) await operator.applyPolicy(cluster, ENFORCED);
      if (!enforce && policy?.text === ENFORCED) await operator.withdrawPolicy(cluster);
    }
  }

  /**
   * What `apply` does, by a process that may have been begun long ago: a mistake that came into the file since keeps nobody from
   * evicting, and what was applied before stands. Rejects with `OrderError` or `StoreError`.
   */
  resume(): Promise<void> {
    return this.#unlessMistaken(() => this.apply());
  }

  /** Applies the file if it changed since. A mistake in it is told once, and what was applied before stands. */
  async reread(): Promise<void> {
    const { file } = this.#chosen;
    if (file !== undefined) await this.#unlessMistaken(() => this.#applyFile(file));
  }

  async #unlessMistaken(apply: () => Promise<void>): Promise<void> {
    try {
      await apply();
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
      if (error.message !== this.#seen) this.#deps.log.warn('policy.refused', { reason: error });
      this.#seen = error.message;
    }
  }

  async #applyFile(file: string): Promise<void> {
    const text = readPolicyFile(file);
    if (text === this.#seen) return;
    for (const cluster of this.#clusters) {
      const applied = await this.#deps.operator.applyPolicy(cluster, text).catch((error: unknown) => {
        throw namingFile(file, error);
      });
      const { mode } = parsePolicyDocument(text);
      if (applied === 'applied') this.#deps.log.info('policy.applied', { cluster, mode });
    }
    this.#seen = text;
  }
}
