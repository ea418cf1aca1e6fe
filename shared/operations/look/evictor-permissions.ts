import { asksLease } from '#shared/eviction/gate.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Policy } from '#shared/eviction/policy.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import {
  EVICT_PERMISSIONS,
  evictedNamespaces,
  isDenied,
  isRequired,
  missingPermissions,
  NEEDED_PERMISSIONS,
  neededUnder,
  nodeLeaseHint,
  OBSERVE_PERMISSIONS,
  type PermissionReview,
  permissionsNeededBy,
  permissionText,
} from '#shared/kubernetes/permissions.ts';
import { identityOf, type RegisteredCluster } from '#shared/state/registry.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { type Fleet, FleetError, type ServiceAccount } from '../fleet/fleet.ts';
import { type LiveCluster, withCluster } from '../fleet/live-cluster.ts';
import { accountPermissions, userOf } from './account-permissions.ts';
import { bad, type ClusterFinding, ok, warn } from './finding.ts';

/** Clusters that are checked at a time. The stack keeps as many invocations of `evict` free for checks. */
export const PARALLEL_CHECKS = 5;

/** The result, which is a warning if the permissions are not verified, and hints about optional ones. */
export type PermissionFindings = readonly [result: ClusterFinding, ...hints: ClusterFinding[]];

type Evictors = Pick<Fleet, 'checkAccess' | 'cluster' | 'registry' | 'serviceAccount'>;

/**
 * Checks the permissions of `evict`, or of the service, under this policy. `registered`: the cluster, if it is not in
 * the registry yet. Never rejects: an error is the result.
 */
export async function evictorPermissions(
  { checkAccess, registry, serviceAccount, ...fleet }: Evictors,
  name: ClusterName,
  policy: Policy,
  registered?: RegisteredCluster,
): Promise<PermissionFindings> {
  try {
    if (checkAccess) {
      const found = registered ?? (await registry?.get(name));
      if (found) return await evictPermissions(checkAccess, found, policy);
      throw new FleetError(`Cluster "${name}" not found.`);
    }
    return await withCluster(fleet, name, (live) => servicePermissions(live, policy, serviceAccount));
  } catch (error) {
    return notVerified(checkAccess ? 'evict' : 'the service', errorMessage(error));
  }
}

const notVerified = (whose: string, why: string, fix = 'Fix the cause.'): PermissionFindings => [
  warn('permissions', `The permissions of ${whose} are not verified: ${why}`, fix),
];

async function evictPermissions(
  checkAccess: NonNullable<Fleet['checkAccess']>,
  { name, access }: RegisteredCluster,
  policy: Policy,
): Promise<PermissionFindings> {
  if (access.kind === 'agent') {
    const why = 'only the agent has access to the cluster.';
    return notVerified(`agent ${access.agent}`, why, 'Run taintward doctor --context NAME.');
  }
  const answer = await checkAccess({ name, access, namespaces: evictedNamespaces(policy) });
  if (!answer.reached) {
    const sentence = `evict cannot work in the cluster: ${answer.reason}`;
    return [bad('permissions', sentence, 'Fix the cause (docs/how-to/grant-cluster-access.md).')];
  }
  const allowed = async (right: Permission) => !answer.missing.includes(permissionText(right));
  const relay = identityOf(access, 'relay');
  const isShared = relay !== undefined && relay === identityOf(access, 'evict');
  const permissions = isShared ? NEEDED_PERMISSIONS : EVICT_PERMISSIONS;
  return findingsOf({ review: { host: name, allowed }, whose: 'evict' }, permissions, policy);
}

/** Checks the permissions of a service by its account in the cluster, or by the credentials of this process. */
export async function servicePermissions(
  live: LiveCluster,
  policy: Policy,
  account: ServiceAccount | undefined,
): Promise<PermissionFindings> {
  const reviewed = reviewedBy(live, account);
  const fix = account && INSTALL;
  try {
    return await findingsOf(reviewed, NEEDED_PERMISSIONS, policy, fix, policy.mode === 'observe');
  } catch (error) {
    if (!isDenied(error)) throw error;
    if (!account)
      return notVerified(
        'the credentials',
        "they can't create selfsubjectaccessreviews.",
        'Bind the ClusterRole system:basic-user to them. If they lack permissions, the first denied request says so.',
      );
    return notVerified(
      reviewed.whose,
      "your credentials can't create subjectaccessreviews.",
      `Run this command as a cluster administrator, or run kubectl auth can-i --list --as ${userOf(account)}. If the service lacks permissions, taintward status says so.`,
    );
  }
}

const INSTALL =
  'Install the chart, or the files in deploy/in-cluster, of this release again, with the rbac values that the policy needs.';

export const reviewedBy = (
  { api, objects }: Pick<LiveCluster, 'api' | 'objects'>,
  account: ServiceAccount | undefined,
): { readonly review: PermissionReview; readonly whose: string } =>
  account
    ? {
        review: accountPermissions(objects, api.host, account),
        whose: `ServiceAccount ${account.namespace}/${account.name}`,
      }
    : { review: api, whose: 'The credentials' };

async function findingsOf(
  { review, whose }: ReturnType<typeof reviewedBy>,
  permissions: readonly Permission[],
  policy: Policy,
  fix = 'Grant them with the roles in cdk/rbac, in all namespaces unless one is named.',
  observes = false,
): Promise<PermissionFindings> {
  const ofPolicy = permissionsNeededBy(policy).flatMap(({ permissions }) => permissions);
  const needed = neededUnder(policy, permissions);
  const optional = needed.filter((right) => !isRequired(right));
  const [missing, noEvents] = await Promise.all([
    missingPermissions(review, [...needed.filter(isRequired), ...ofPolicy]),
    missingPermissions(review, optional),
  ]);
  const hint = asksLease({ policy }) ? await nodeLeaseHint(review) : undefined;
  const [has, lacks] = whose === 'The credentials' ? ['have', 'lack'] : ['has', 'lacks'];
  const what = 'permissions that the service needs';
  const result =
    missing.length === 0
      ? ok('permissions', `${whose} ${has} all ${what}.`)
      : observes && !OBSERVE_PERMISSIONS.some((right) => missing.includes(permissionText(right)))
        ? ok(
            'permissions',
            `${whose} ${has} all permissions that observe mode needs. To evict, grant ${[...missing, ...noEvents].join(', ')}.`,
          )
        : bad('permissions', `${whose} ${lacks} ${what}: ${missing.join(', ')}.`, fix);
  const hints: ClusterFinding[] = [];
  if (noEvents.length > 0 && !observes) {
    const sentence = `${whose} cannot create Events, so none report evictions.`;
    hints.push(warn('permissions', sentence, `Grant ${noEvents.join(', ')} (cdk/rbac/evict).`));
  }
  if (hint !== undefined) {
    const sentence = `${whose} cannot read node Leases, which show whether an unreachable node is alive.`;
    hints.push(warn('permissions', sentence, hint));
  }
  return [result, ...hints];
}

/**
 * Why pods may not be evicted in a cluster that a policy switches to enforce mode: permissions that it needs are
 * missing, or not verified.
 */
export async function evictorDoubts(
  policy: Policy,
  cluster: ClusterName,
  fleet: Fleet,
): Promise<readonly string[]> {
  if (policy.mode !== 'enforce') return [];
  const { orders } = await fleet.rulesStore.read(cluster);
  if (orders.policy?.read.mode === 'enforce') return [];
  const [{ verdict, message, remediation }] = await evictorPermissions(fleet, cluster, policy);
  return verdict === 'ok' ? [] : [`Cluster ${cluster}: ${message} ${remediation}`];
}

/** Returns the permissions that settings of a policy require, one sentence each. */
export const neededTexts = (policy: Policy): readonly string[] =>
  permissionsNeededBy(policy).map(
    ({ setting, permissions, grant }) =>
      `${setting} requires the permission to ${permissions.map(permissionText).join(', ')} in the cluster (${grant}). If the service lacks it, its log contains policy.permission-missing.`,
  );

/** Keys of `NoSchedule` taints for which Karpenter and KubeVirt evict. */
const OF_OTHERS = ['karpenter.sh/disrupted', 'kubevirt.io/drain'];

export const evictedByOthers = ({ treatAsNoExecute }: Policy): readonly string[] =>
  OF_OTHERS.filter((key) => treatAsNoExecute.includes(key)).map(
    (key) =>
      `Warning: another controller evicts for ${key}, so with treatAsNoExecute both would evict. Remove that key (docs/concepts/other-controllers.md).`,
  );

/** Returns what applying a policy would need, and what it would break, one sentence each. */
export const policyNotes = async (
  policy: Policy,
  cluster: ClusterName,
  fleet: Fleet,
): Promise<readonly string[]> => [
  ...(await evictorDoubts(policy, cluster, fleet)),
  ...neededTexts(policy),
  ...evictedByOthers(policy),
];
