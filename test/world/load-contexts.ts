import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { contextConnection } from '#shared/kubernetes/kubeconfig/kubeconfig.ts';
import { currentContext, readKubeconfig } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';

/** A context of a kubeconfig, with the connection to its cluster. */
export interface Context {
  readonly name: string;
  readonly connection: Connection;
}

/**
 * Returns the named contexts of a kubeconfig; without names, its current one. `kubeconfig` is a path; absent: kubectl's
 * default. Throws `KubeconfigError`.
 */
export function loadContexts(options: {
  readonly kubeconfig?: string;
  readonly contexts: readonly string[];
}): readonly Context[] {
  const { contexts, kubeconfig } = options;
  const names = contexts.length > 0 ? contexts : [currentContext(readKubeconfig(kubeconfig))];
  return names.map((name) => ({ name, connection: contextConnection(name, kubeconfig) }));
}
