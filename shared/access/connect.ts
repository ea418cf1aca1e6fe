import type { Connection } from '#shared/kubernetes/http/connection.ts';
import {
  type EksAccess,
  type LocalContextAccess,
  ofPart,
  type Part,
  type RegisteredCluster,
} from '#shared/state/registry.ts';
import type { Clock } from '#shared/time/clock.ts';
import { AccessError } from './access-error.ts';
import type { AwsClients, EksWay } from './aws-clients.ts';
import { eksConnection } from './eks-connection.ts';
import { kubeconfigSecretConnection } from './kubeconfig-secret-connection.ts';

/** A part's connection to a cluster. It makes no requests yet, so it never fails: each call reports a wrong access. */
export type Connect = (cluster: RegisteredCluster, part: Part) => Connection;

export interface ConnectDeps {
  readonly aws: AwsClients;
  readonly clock: Clock;
  /** Absent in processes without a kubeconfig file. */
  readonly localContext?: (access: LocalContextAccess) => Connection;
}

export function connector({ aws, clock, localContext }: ConnectDeps): Connect {
  return ({ name, access }, part) => {
    switch (access.kind) {
      case 'eks':
        return eksConnection(eksWay(access, part), aws, clock);
      case 'kubeconfig-secret':
        return kubeconfigSecretConnection(
          { ...access, secretArn: ofPart(access.secretArn, part) },
          aws,
          clock,
        );
      case 'local-context':
        if (localContext) return localContext(access);
        return noWay(
          name,
          `it is registered by context "${access.context}" of a kubeconfig file, which this process does not have; remove it, and add it by EKS or by a kubeconfig in Secrets Manager`,
        );
      case 'agent':
        return noWay(
          name,
          `agent ${access.agent} runs in it, and it cannot be reached from outside: use your own permissions, with --context`,
        );
      case 'unreadable':
        return noWay(name, access.reason);
      default:
        return access satisfies never;
    }
  };
}

const eksWay = ({ role, ...access }: EksAccess, part: Part): EksWay => ({
  ...access,
  ...(role === undefined ? {} : { role: ofPart(role, part) }),
});

function noWay(name: string, why: string): Connection {
  return { host: `cluster ${name}`, requestOptions: () => Promise.reject(new AccessError(why)) };
}
