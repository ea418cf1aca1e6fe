/** The minor releases of Kubernetes on whose own API server and controllers the suites run. The README names them, too. */
export const PROVEN_KUBERNETES: readonly string[] = ['1.36', '1.37'];

/** Whether a server's `gitVersion`, like v1.36.3 or v1.36.3-eks-1a2b3c4, is of one of them. */
export const isProven = (gitVersion: string): boolean =>
  PROVEN_KUBERNETES.includes(/^v(\d+\.\d+)/.exec(gitVersion)?.[1] ?? '');
