import { fieldsOf } from '#shared/kubernetes/http/api-json.ts';
import type { PermissionReview } from '#shared/kubernetes/permissions.ts';
import type { ServiceAccount } from '#shared/operations/fleet/fleet.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';

const REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

export const userOf = ({ namespace, name }: ServiceAccount): string =>
  `system:serviceaccount:${namespace}:${name}`;

/** The caller needs the permission to review the access of others. */
export function accountPermissions(
  objects: Pick<ClusterObjects, 'create'>,
  host: string,
  account: ServiceAccount,
): PermissionReview {
  return {
    host,
    async allowed({ verb, resource, ...scope }) {
      const [kind, subresource = ''] = resource.split('/');
      const review = await objects.create(REVIEWS, {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: {
          user: userOf(account),
          groups: [
            'system:serviceaccounts',
            `system:serviceaccounts:${account.namespace}`,
            'system:authenticated',
          ],
          resourceAttributes: { verb, resource: kind, subresource, ...scope },
        },
      });
      return fieldsOf(fieldsOf(review)['status'])['allowed'] === true;
    },
  };
}
