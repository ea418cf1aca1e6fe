/**
 * The origin of the rejection of a call that was to remove a pod.
 * - `budget`: the pod's disruption budget, or the Eviction API because the pod has several.
 * - `admission`: a webhook or a ValidatingAdmissionPolicy, for this pod: KubeVirt moves a VM, Strimzi rolls a broker.
 * - `server`: the API server, or a proxy before it, for any call: it throttles, does not respond, or rejects the
 *   credentials.
 * - `other`: this call alone failed, for example for lack of a permission, or because a webhook could not be called
 *   or did not respond.
 */
export type Refuser = 'budget' | 'admission' | 'server' | 'other';

/** The fields of an `ApiError` that show the origin of a rejection. */
export interface Refusal {
  /** The HTTP status; 0: no response came. */
  readonly status: number;
  readonly causes: readonly string[];
  readonly message: string;
}

/** A write without a response in time. Webhooks may delay writes for 30 s (default 10 s) while other calls succeed. */
export const UNANSWERED_WRITE = 'UnansweredWrite';

/**
 * No object can be created in a namespace that is being deleted. An eviction counts as one; marks and deletes don't.
 * Upstream: the admission plugin `NamespaceLifecycle`.
 */
export const NAMESPACE_TERMINATING = 'NamespaceTerminating';

/**
 * Budgets' messages without a cause: several budgets, a status that can't be counted down (403 until Kubernetes 1.37),
 * and one that too many evictions change. Upstream: `EvictionREST.Create`, `checkAndDecrement`.
 */
const BUDGET_WORDS: Readonly<Record<number, RegExp>> = {
  403: /poddisruptionbudget\.policy "[^"]*" is forbidden/,
  500: /more than one PodDisruptionBudget/,
  504: /couldn't update PodDisruptionBudget/,
};

/**
 * Upstream: `webhookerrors.ToStatusErr`, and the dispatcher of validating policies. A webhook chooses its status
 * freely.
 */
const ADMISSION_WORDS =
  /admission webhook "[^"]*" denied the request|ValidatingAdmissionPolicy '.*' denied request/;

/**
 * A 429 is the server's own unless it names another origin: if throttling were taken for a blocked pod, requests would
 * continue at the same pace, and the pod would be deleted at its deadline.
 */
export function refuserOf({ status, causes, message }: Refusal): Refuser {
  if (causes.includes(UNANSWERED_WRITE)) return 'other';
  if (causes.includes('DisruptionBudget') || BUDGET_WORDS[status]?.test(message)) return 'budget';
  if (status !== 0 && ADMISSION_WORDS.test(message)) return 'admission';
  return [0, 401, 429].includes(status) || status >= 502 ? 'server' : 'other';
}

/** Returns a rejection as the Eviction API's response about its pod; `undefined`: it is not about the pod. */
export function blockedBy(refusal: Refusal): Extract<EvictionAnswer, { kind: 'blocked' }> | undefined {
  const refuser = refuserOf(refusal);
  return refuser === 'budget' || refuser === 'admission'
    ? { kind: 'blocked', by: refuser, reason: refusal.message }
    : undefined;
}

export type EvictionAnswer =
  | { readonly kind: 'evicted' }
  /** `budget`: blocked by it, or because the pod has several. `admission`: by a webhook or policy, with the message. */
  | { readonly kind: 'blocked'; readonly by: 'budget' | 'admission'; readonly reason: string };
