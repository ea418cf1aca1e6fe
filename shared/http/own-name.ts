import { isIP } from 'node:net';

/** Suffixes of names that only the DNS of a Kubernetes cluster serves: no public domain ends so. */
const CLUSTER_SUFFIXES = ['.svc', '.svc.cluster.local'];

/**
 * Reports whether a `Host` header can be meant for a server of ours: it names an address, a host without a domain, a
 * service of a cluster, or one of `names`. A web page whose domain was pointed here (DNS rebinding) sends that domain.
 */
export function isOwnName(header: string, names: readonly string[] = []): boolean {
  const host = /^(?:\[([^\]]+)\]|([^:]+))(?::\d{1,5})?$/.exec(header);
  const [, ipv6, other = ''] = host ?? [];
  if (ipv6 !== undefined) return isIP(ipv6) === 6;
  const name = other.toLowerCase().replace(/\.$/, '');
  return (
    isIP(name) === 4 ||
    /^[a-z0-9_-]+$/.test(name) ||
    CLUSTER_SUFFIXES.some((suffix) => name.endsWith(suffix)) ||
    names.includes(name)
  );
}
