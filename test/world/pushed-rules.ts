import type { RulesListener } from '#shared/engine/watch/rules-watch.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { enforced } from './enforced-rules.ts';

/**
 * The rules of all clusters, sent immediately to each listener, and on every change. At first all clusters are enforced.
 */
export class PushedRules {
  #rules = enforced({ comparisonOperators: false });
  readonly #listeners = new Set<RulesListener>();

  follow(_cluster: ClusterName, listener: RulesListener, signal: AbortSignal): void {
    this.#listeners.add(listener);
    signal.addEventListener('abort', () => this.#listeners.delete(listener));
    listener(this.#rules);
  }

  push(fields: Partial<Rules>): void {
    this.#rules = { ...this.#rules, ...fields };
    for (const listener of this.#listeners) listener(this.#rules);
  }
}
