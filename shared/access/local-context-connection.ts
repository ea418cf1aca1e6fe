import type { Connection } from '#shared/kubernetes/http/connection.ts';
import type { ContextOptions } from '#shared/kubernetes/kubeconfig/kubeconfig.ts';
import type { LocalContextAccess } from '#shared/state/registry.ts';

/** Returns a connection that loads the code of its kind when first needed. `host`: its name until then. */
export function lazyConnection(host: string, load: () => Promise<Connection>): Connection {
  let connection: Connection | undefined;
  return {
    get host() {
      return connection?.host ?? host;
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

/**
 * By a context of this machine's kubeconfig, read when first needed, with plugins unless `options` forbid them. Not in
 * `connect`, because functions don't need it.
 */
export const localContextConnection = (
  { kubeconfig, context }: LocalContextAccess,
  options: ContextOptions = {},
): Connection =>
  lazyConnection(`context "${context}"`, async () => {
    const { contextConnection } = await import('#shared/kubernetes/kubeconfig/kubeconfig.ts');
    return contextConnection(context, kubeconfig, options);
  });
