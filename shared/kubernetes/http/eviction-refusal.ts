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
  /** The reasons of `Status.details.causes`. */
  readonly causes: readonly string[];
  /** The message, with the server's own text. */
  readonly message: string;
}

/**
 * The cause of a write without a response in time, on a connection that is alive. Admission webhooks may delay a
 * write for 30 s, by default for 10 s, while the API server responds to all other calls.
 */
export const UNANSWERED_WRITE = 'UnansweredWrite';

/**
 * The cause of a rejected creation in a namespace that is being deleted. An eviction counts as one; pods can still be
 * marked and deleted there. Upstream: the admission plugin `NamespaceLifecycle`.
 */
export const NAMESPACE_TERMINATING = 'NamespaceTerminating';

/**
 * Messages of budgets that name no cause. They are about a pod with several budgets, and about a status that budgets
 * cannot count down (403 until Kubernetes 1.37). The last one is about a status that too many evictions change at the
 * same time. Upstream: `EvictionREST.Create`, `checkAndDecrement`.
 */
const BUDGET_WORDS: Readonly<Record<number, RegExp>> = {
  403: /poddisruptionbudget\.policy "[^"]*" is forbidden/,
  500: /more than one PodDisruptionBudget/,
  504: /couldn't update PodDisruptionBudget/,
};

/**
 * Messages of admission. Upstream: `webhookerrors.ToStatusErr`, and the dispatcher of validating policies. A webhook
 * chooses its status freely.
 */
const ADMISSION_WORDS =
  /admission webhook "[^"]*" denied the request|ValidatingAdmissionPolicy '.*' denied request/;

/**
 * Returns the origin of a rejection. A 429 comes from the server itself unless it names another origin. If throttling
 * were taken for a blocked pod, requests would continue at the same pace, and the pod would be deleted at its
 * deadline.
 */
export function refuserOf({ status, causes, message }: Refusal): Refuser {
  if (causes.includes(UNANSWERED_WRITE)) return 'other';
  if (causes.includes('DisruptionBudget') || BUDGET_WORDS[status]?.test(message)) return 'budget';
  if (status !== 0 && ADMISSION_WORDS.test(message)) return 'admission';
  return [0, 401, 429].includes(status) || status >= 502 ? 'server' : 'other';
}

/** Returns a rejection as the Eviction API's response about its pod; `undefined`: it is not about the pod. */
export function blockedBy(refusal: Refusal): Extract<EvictionAnswer, { kind: 'blocked' }> | undefined {
  const by = refuserOf(refusal);
  return by === 'budget' || by === 'admission' ? { kind: 'blocked', by, reason: refusal.message } : undefined;
}

/** The Eviction API's response. */
export type EvictionAnswer =
  | { readonly kind: 'evicted' }
  /**
   * The eviction of this pod is blocked for now. `budget`: by its disruption budget, or by the API, because the pod
   * has several. `admission`: by a webhook or a policy. `reason`: a sentence with the server's message.
   */
  | { readonly kind: 'blocked'; readonly by: 'budget' | 'admission'; readonly reason: string };
