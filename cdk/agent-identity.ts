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

/** As whom an agent acts: a role that the pods of one service account become, or a policy for a role that somebody brings. */
export class AgentIdentity extends Construct implements Grantee {
  readonly grantPrincipal: IPrincipal;
  /** `undefined`: somebody brings one, and attaches the policy to it. */
  readonly role: Role | undefined;
  readonly policy: ManagedPolicy | undefined;
  /** What the agent is told. */
  readonly environment: Record<string, string> = {};

  constructor(scope: Construct, id: string, { agent, names }: AgentIdentityProps) {
    super(scope, id);
    const trusted = trustedBy(agent);
    // Of a role and of a policy alike the name is the account's, whatever the region.
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

/** Who becomes the agent; `undefined`: nothing is said about that. */
function trustedBy({ podIdentity, irsa, namespace, serviceAccount }: AgentConfig): IPrincipal | undefined {
  if (podIdentity) return podsOf(podIdentity.clusterArns, namespace, serviceAccount);
  if (irsa) return accountOf(irsa.oidcProvider, namespace, serviceAccount);
  return undefined;
}

/**
 * EKS Pod Identity names the pod by session tags (EKS User Guide, "Create IAM role with trust policy required by EKS Pod
 * Identity"). The cluster by its tag, too, and not by `aws:SourceArn`: of what that holds for pods EKS says nothing.
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

/** The token of a service account names its issuer, itself and for whom it is (EKS User Guide, "Assign IAM roles to Kubernetes service accounts"). */
function accountOf(oidcProvider: string, namespace: string, serviceAccount: string): IPrincipal {
  const issuer = oidcProvider.slice(oidcProvider.indexOf('/') + 1);
  return new WebIdentityPrincipal(oidcProvider, {
    StringEquals: {
      [`${issuer}:sub`]: `system:serviceaccount:${namespace}:${serviceAccount}`,
      [`${issuer}:aud`]: 'sts.amazonaws.com',
    },
  });
}
