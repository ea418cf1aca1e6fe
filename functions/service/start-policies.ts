import type { ClusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Policy } from '#shared/eviction/policy.ts';
import { type Need, requiredUnder } from '#shared/kubernetes/permissions.ts';
import type { RulesAct } from '#shared/operations/acts/act.ts';
import { performChosen } from '#shared/operations/acts/perform.ts';
import type { Operator } from '#shared/state/operator.ts';
import { PolicyError, parseAppliedPolicy } from '#shared/state/policy-document.ts';
import { checkedPolicy, type PolicySource } from '#shared/state/policy-file.ts';
import type { RulesStore, StoredRules } from '#shared/state/rules-store.ts';
import { parsePolicyOnce } from '#shared/state/stored-rules.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Policy of a cluster that the command line enforces. It is recognized by its text. */
const ENFORCED = '# By npm start, for want of another policy.\nmode: enforce\n';

/** Policies with which a process is started, for all its clusters. */
export interface ChosenPolicies {
  /** Enforces clusters that have no policy. */
  readonly enforce: boolean;
  /** Absent: commands own the policies. */
  readonly source?: PolicySource | undefined;
}

export interface StartPoliciesDeps {
  readonly operator: Operator;
  readonly log: Log;
}

/**
 * Returns the permissions that a cluster needs under its policy. That of its source counts before it is applied, unless
 * it is invalid.
 */
export function neededPermissions(
  { enforce, source }: ChosenPolicies,
  rulesStore: Pick<RulesStore, 'read'>,
): (cluster: ClusterName) => Promise<readonly Need[]> {
  const otherwise: Policy = enforce ? { ...DEFAULT_POLICY, mode: 'enforce' } : DEFAULT_POLICY;
  return async (cluster) => {
    const text = await source?.read().catch(unlessMistaken);
    if (text !== undefined) return requiredUnder(parsePolicyOnce(text));
    const { policy } = (await rulesStore.read(cluster)).orders;
    return requiredUnder(policy && policy.text !== ENFORCED ? policy.read : otherwise);
  };
}

function unlessMistaken(error: unknown): undefined {
  if (!(error instanceof PolicyError)) throw error;
}

/**
 * Applies the policies with which a process was started, and follows changes of their source, which owns them. Without a
 * source, policies stay in force, and commands own them.
 */
export class StartPolicies {
  readonly #chosen: ChosenPolicies;
  readonly #clusters: readonly ClusterName[];
  readonly #deps: StartPoliciesDeps;
  /** Message of the last error, if the policy could not be read since. */
  #mistake: string | undefined;

  constructor(chosen: ChosenPolicies, clusters: readonly ClusterName[], deps: StartPoliciesDeps) {
    this.#chosen = chosen;
    this.#clusters = clusters;
    this.#deps = deps;
  }

  /** Rejects with `PolicyError` if the source is invalid, with `OperatorError`, or with `StoreError`. */
  async apply(): Promise<void> {
    const { source, enforce } = this.#chosen;
    const { operator, log } = this.#deps;
    for (const cluster of this.#clusters) {
      let text: string | undefined;
      const choose = async ({ orders: { policy } }: StoredRules): Promise<RulesAct | undefined> => {
        // The source is read after the rules. So a process that was suspended in between never replaces the policy that
        // another one read later.
        text = await source?.read();
        if (source && text !== undefined) {
          if (policy?.text === text && policy.owner === source.owner) return undefined;
          if (policy?.text !== text) checkedPolicy(source.owner, text, parseAppliedPolicy);
          return { kind: 'apply-policy', cluster, text, owner: source.owner };
        }
        if (policy?.owner !== undefined) return { kind: 'release-policy', cluster };
        if (enforce && !policy) return { kind: 'apply-policy', cluster, text: ENFORCED };
        return !enforce && policy?.text === ENFORCED ? { kind: 'withdraw-policy', cluster } : undefined;
      };
      const applied = await performChosen(cluster, choose, operator);
      if (applied && text !== undefined)
        log.info('policy.applied', { cluster, mode: parsePolicyOnce(text).mode });
    }
    this.#mistake = undefined;
  }

  /**
   * Does the same as `apply` in a process that runs already: an error in the source is logged once, and the applied policy
   * remains. Rejects with `OperatorError` or `StoreError`.
   */
  async follow(): Promise<void> {
    try {
      await this.apply();
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
      if (error.message !== this.#mistake) this.#deps.log.warn('policy.invalid', { error });
      this.#mistake = error.message;
    }
  }
}
