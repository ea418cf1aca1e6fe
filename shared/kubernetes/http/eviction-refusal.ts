/**
 * Who refused a call that was to remove a pod.
 * - `budget`: the pod's disruption budget, or the Eviction API because the pod has several.
 * - `admission`: a webhook or a ValidatingAdmissionPolicy, for this pod: KubeVirt moves a VM, Strimzi rolls a broker.
 * - `server`: the API server, or a proxy before it, for any call: it throttles, does not answer, or rejects the credentials.
 * - `other`: this call alone failed, for example for want of a permission, or because a webhook could not be called or did not answer.
 */
export type Refuser = 'budget' | 'admission' | 'server' | 'other';

/** The fields of an `ApiError` that tell who refused. */
export interface Refusal {
  /** The HTTP status; 0 when no answer came. */
  readonly status: number;
  /** The reasons of `Status.details.causes`. */
  readonly causes: readonly string[];
  /** Includes the server's own words. */
  readonly message: string;
}

/**
 * The cause of a write that was not answered in time on a connection that is well. Admission webhooks may keep a write waiting for
 * 30 s, by default for 10, while the API server answers all else.
 */
export const UNANSWERED_WRITE = 'UnansweredWrite';

/**
 * The words of budgets that name no cause: of a pod with several budgets, of a status that budgets cannot count down (403 until
 * Kubernetes 1.37), and of one that too many evictions change at a time. Upstream: `EvictionREST.Create`, `checkAndDecrement`.
 */
const BUDGET_WORDS: Readonly<Record<number, RegExp>> = {
  403: /poddisruptionbudget\.policy "[^"]*" is forbidden/,
  500: /more than one PodDisruptionBudget/,
  504: /couldn't update PodDisruptionBudget/,
};

/** Upstream: `webhookerrors.ToStatusErr`, and the dispatcher of validating policies. A webhook chooses its status freely. */
const ADMISSION_WORDS =
  /admission webhook "[^"]*" denied the request|ValidatingAdmissionPolicy '.*' denied request/;

/**
 * Decides whose refusal this is. A 429 is the server's own unless it names somebody else: who took a throttled server for a
 * pod's refusal would ask on at the same pace, and delete the pod at its deadline.
 */
export function refuserOf({ status, causes, message }: Refusal): Refuser {
  if (causes.includes(UNANSWERED_WRITE)) return 'other';
  if (causes.includes('DisruptionBudget') || BUDGET_WORDS[status]?.test(message)) return 'budget';
  if (status !== 0 && ADMISSION_WORDS.test(message)) return 'admission';
  return [0, 401, 429].includes(status) || status >= 502 ? 'server' : 'other';
}

/** A refusal as the Eviction API's answer about its pod; `undefined`: it says nothing about the pod. */
export function blockedBy(refusal: Refusal): Extract<EvictionAnswer, { kind: 'blocked' }> | undefined {
  const by = refuserOf(refusal);
  return by === 'budget' || by === 'admission' ? { kind: 'blocked', by, reason: refusal.message } : undefined;
}

/** What the Eviction API said to a request. */
export type EvictionAnswer =
  | { readonly kind: 'evicted' }
  /**
   * This pod is refused for now: by its disruption budget (or the API, because it has several), or by admission, which is a webhook
   * or a policy. `reason`: a sentence with the server's words.
   */
  | { readonly kind: 'blocked'; readonly by: 'budget' | 'admission'; readonly reason: string };
