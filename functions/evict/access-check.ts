import { type AccessAnswer, type AccessQuestion, accessQuestionSchema } from '#shared/access/access-check.ts';
import { type ClusterGrants, ungrantedAccess } from '#shared/access/cluster-grants.ts';
import type { Connect } from '#shared/access/connect.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import {
  EVICTION_API_PERMISSIONS,
  missingPermissions,
  NEEDED_PERMISSIONS,
  NODE_LEASE_PERMISSION,
} from '#shared/kubernetes/permissions.ts';
import { WORKLOAD_PERMISSIONS } from '#shared/kubernetes/replicas.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { parseAccess } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { readAs } from '#shared/text/read-as.ts';
import type { Clock } from '#shared/time/clock.ts';

export interface AccessCheckDeps {
  readonly connect: Connect;
  readonly clock: Clock;
  readonly grants: ClusterGrants;
}

/**
 * Makes a handler that also answers whether Taintward could work in a cluster (`AccessQuestion`), without
 * changes there. A caller that may ask may also invoke the function with any event. This permits no more than
 * sending to its queue, because due work is decided by the current state.
 */
export function withAccessCheck<Event, Context, Result>(
  handler: (event: Event, context: Context) => Promise<Result>,
  deps: AccessCheckDeps,
) {
  return async (event: Event | AccessQuestion, context: Context): Promise<Result | AccessAnswer> =>
    isQuestion(event) ? answer(event, deps) : handler(event, context);
}

const isQuestion = <Event>(event: Event | AccessQuestion): event is AccessQuestion =>
  typeof event === 'object' && event !== null && 'checkAccess' in event;

async function answer(
  question: AccessQuestion,
  { connect, clock, grants }: AccessCheckDeps,
): Promise<AccessAnswer> {
  const { data, error } = readAs(accessQuestionSchema, question);
  if (data === undefined) {
    const reason = `Function evict does not understand this request (${error.issues[0]?.message}). Deploy the release of this command.`;
    return { reached: false, reason };
  }
  const { name, namespaces } = data.checkAccess;
  const access = parseAccess(data.checkAccess.access);
  const ungranted = ungrantedAccess(access, grants);
  if (ungranted !== undefined) return { reached: false, reason: ungranted };
  const api = new RestApi(connect({ name, access }, 'evict'), clock);
  try {
    const [missing, uids] = await Promise.all([missingPermissions(api, reviewedIn(namespaces)), api.uids()]);
    return { reached: true, missing, uids };
  } catch (failure) {
    if (!(failure instanceof ApiError)) throw failure;
    return { reached: false, reason: failure.message };
  } finally {
    api.close();
  }
}

/** All permissions that any policy could need. A single identity for both parts also needs those of the relay. */
const REVIEWED: readonly Permission[] = [
  ...NEEDED_PERMISSIONS,
  ...EVICTION_API_PERMISSIONS,
  ...WORKLOAD_PERMISSIONS,
  NODE_LEASE_PERMISSION,
];

/** The caller decides by the policy where it needs a permission, so each is reviewed everywhere, and by namespace. */
const reviewedIn = (namespaces: readonly string[]): readonly Permission[] => [
  ...REVIEWED,
  ...namespaces.flatMap((namespace) => REVIEWED.map((right) => ({ namespace, ...right }))),
];
