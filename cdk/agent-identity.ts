import { Aws } from 'aws-cdk-lib';
import {
  type IPrincipal,
  ManagedPolicy,
  Role,
  ServicePrincipal,
  WebIdentityPrincipal,
} from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import type { AgentNames } from '#shared/aws/agent-names.ts';
import type { AgentConfig } from './config.ts';
import type { Grantee } from './grantee.ts';

export interface AgentIdentityProps {
  readonly agent: AgentConfig;
  readonly names: AgentNames;
}

/** The identity of an agent: a role for the pods of one service account, or a policy to attach to an existing role. */
export class AgentIdentity extends Construct implements Grantee {
  readonly grantPrincipal: IPrincipal;
  /** `undefined`: the user brings a role and attaches the policy to it. */
  readonly role: Role | undefined;
  readonly policy: ManagedPolicy | undefined;
  readonly environment: Record<string, string> = {};

  constructor(scope: Construct, id: string, { agent, names }: AgentIdentityProps) {
    super(scope, id);
    const trusted = trustedBy(agent);
    // Names of roles and of policies are unique in the account, across all regions.
    const [name, description] = [names.role, `What ${names.prefix} may do.`];
    this.role = trusted && new Role(this, 'Role', { roleName: name, description, assumedBy: trusted });
    this.policy = trusted
      ? undefined
      : new ManagedPolicy(this, 'Policy', { managedPolicyName: name, description });
    const principal = (this.role ?? this.policy)?.grantPrincipal;
    if (principal === undefined) throw new Error('an agent without identity');
    this.grantPrincipal = principal;
  }

  setEnvironment(values: Readonly<Record<string, string>>): void {
    Object.assign(this.environment, values);
  }
}

/** Returns the principal that may assume the agent's role; `undefined`: the configuration does not name one. */
function trustedBy({ podIdentity, irsa, namespace, serviceAccount }: AgentConfig): IPrincipal | undefined {
  if (podIdentity) return podsOf(podIdentity.clusterArns, namespace, serviceAccount);
  if (irsa) return accountOf(irsa.oidcProvider, namespace, serviceAccount);
  return undefined;
}

/**
 * EKS Pod Identity names the pod by session tags (EKS User Guide, "Create IAM role with trust policy required by EKS
 * Pod Identity"): so is the cluster, because EKS does not document `aws:SourceArn` for pods.
 */
const podsOf = (clusterArns: readonly string[], namespace: string, serviceAccount: string): IPrincipal =>
  new ServicePrincipal('pods.eks.amazonaws.com', {
    conditions: {
      StringEquals: {
        'aws:SourceAccount': Aws.ACCOUNT_ID,
        'aws:RequestTag/eks-cluster-arn': clusterArns,
        'aws:RequestTag/kubernetes-namespace': namespace,
        'aws:RequestTag/kubernetes-service-account': serviceAccount,
      },
    },
  }).withSessionTags();

/**
 * The token of a service account names its issuer, itself and its audience (EKS User Guide, "Assign IAM roles to
 * Kubernetes service accounts").
 */
function accountOf(oidcProvider: string, namespace: string, serviceAccount: string): IPrincipal {
  const issuer = oidcProvider.slice(oidcProvider.indexOf('/') + 1);
  return new WebIdentityPrincipal(oidcProvider, {
    StringEquals: {
      [`${issuer}:sub`]: `system:serviceaccount:${namespace}:${serviceAccount}`,
      [`${issuer}:aud`]: 'sts.amazonaws.com',
    },
  });
}
