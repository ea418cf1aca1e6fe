import { KubeconfigError } from './kubeconfig-error.ts';
import type { Kubeconfig, KubeconfigCluster, KubeconfigContext, KubeconfigUser } from './kubeconfig-text.ts';

/** What one or several kubeconfigs say. */
export interface MergedKubeconfig {
  /** Where it was read from, for messages. */
  readonly source: string;
  readonly currentContext: string | undefined;
  readonly clusters: ReadonlyMap<string, KubeconfigCluster>;
  readonly users: ReadonlyMap<string, KubeconfigUser>;
  readonly contexts: ReadonlyMap<string, KubeconfigContext>;
}

/** The cluster and the user of a context. */
export interface ResolvedContext {
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
}

/** Where several kubeconfigs (or lines of one) name the same thing, the first has it. */
export function mergeKubeconfigs(source: string, kubeconfigs: readonly Kubeconfig[]): MergedKubeconfig {
  return {
    source,
    currentContext: kubeconfigs.find((each) => each['current-context'])?.['current-context'],
    clusters: firstOfEach(kubeconfigs.flatMap(({ clusters }) => clusters.map((c) => [c.name, c.cluster]))),
    users: firstOfEach(kubeconfigs.flatMap(({ users }) => users.map((u) => [u.name, u.user]))),
    contexts: firstOfEach(kubeconfigs.flatMap(({ contexts }) => contexts.map((c) => [c.name, c.context]))),
  };
}

/** A map keeps the last of equal keys. */
const firstOfEach = <T>(named: readonly (readonly [string, T])[]): ReadonlyMap<string, T> =>
  new Map(named.toReversed());

/** Throws `KubeconfigError` when there is none. */
export function currentContext({ currentContext: name, source }: MergedKubeconfig): string {
  if (name) return name;
  throw new KubeconfigError(`The kubeconfig ${source} has no current context: name the contexts to manage.`);
}

/** Throws `KubeconfigError`: there is no such context, or it names what is not there. */
export function resolveContext(merged: MergedKubeconfig, name: string): ResolvedContext {
  const { source, clusters, users, contexts } = merged;
  const context = contexts.get(name);
  if (context === undefined) {
    const known = [...contexts.keys()].join(', ') || 'none';
    throw new KubeconfigError(`The kubeconfig ${source} has no context "${name}": it has ${known}.`);
  }
  const cluster = clusters.get(context.cluster ?? '');
  const user = users.get(context.user ?? '');
  if (cluster === undefined) throw dangling(source, name, 'cluster', context.cluster);
  if (user === undefined) throw dangling(source, name, 'user', context.user);
  return { cluster, user };
}

function dangling(
  source: string,
  name: string,
  kind: string,
  reference: string | undefined,
): KubeconfigError {
  const what = reference ? `names the ${kind} "${reference}", which is not there` : `names no ${kind}`;
  return new KubeconfigError(`Context "${name}" of the kubeconfig ${source} ${what}: correct the context.`);
}

/** Throws `KubeconfigError` when a context's cluster has no usable address. */
export function serverUrl(name: string, { cluster }: ResolvedContext): URL {
  const url = URL.parse(cluster.server);
  if (url !== null && (url.protocol === 'https:' || url.protocol === 'http:')) return url;
  // Not quoted: a URL may hold a password.
  throw new KubeconfigError(
    `The server of context "${name}" is not an http or https URL: write it as https://HOST:PORT.`,
  );
}
