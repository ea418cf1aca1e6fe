import type { Connection } from '#shared/kubernetes/http/connection.ts';
import type { ContextOptions } from '#shared/kubernetes/kubeconfig/kubeconfig.ts';
import type { LocalContextAccess } from '#shared/state/registry.ts';

/**
 * By a context of this machine's kubeconfig, read when first needed, with plugins unless `options` forbid them. Not in
 * `connect`, because functions don't need it.
 */
export function localContextConnection(
  { kubeconfig, context }: LocalContextAccess,
  options: ContextOptions = {},
): Connection {
  let connection: Connection | undefined;
  const load = async (): Promise<Connection> => {
    const { contextConnection } = await import('#shared/kubernetes/kubeconfig/kubeconfig.ts');
    return contextConnection(context, kubeconfig, options);
  };
  return {
    get host() {
      return connection?.host ?? `context "${context}"`;
    },
    async requestOptions() {
      connection ??= await load();
      return connection.requestOptions();
    },
    forgetCredentials() {
      connection?.forgetCredentials?.();
    },
  };
}
