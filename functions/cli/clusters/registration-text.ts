import type { RegisteredCluster } from '#shared/clusters/registry.ts';

/** How a cluster is reached, for people. */
export function accessText({ access }: RegisteredCluster): string {
  switch (access.kind) {
    case 'eks': {
      const role = access.role ? `, as ${access.role.arn}` : '';
      return `EKS cluster ${access.clusterName} in ${access.region}${role}`;
    }
    case 'kubeconfig-secret': {
      const context = access.context === undefined ? '' : `, context ${access.context}`;
      return `kubeconfig in ${access.secretArn}${context}`;
    }
    case 'local-context':
      return `context ${access.context} of ${access.kubeconfig ?? 'the default kubeconfig file'}`;
    case 'unreadable':
      return access.reason;
    default:
      return access satisfies never;
  }
}

export const addedText = ({ addedAt }: RegisteredCluster): string => new Date(addedAt).toISOString();

/** A registration for programs. */
export const registrationJson = (cluster: RegisteredCluster): object => ({
  name: cluster.name,
  access: cluster.access,
  addedAt: addedText(cluster),
});
