/** Minor releases of Kubernetes whose own API server and controllers the test suites use. The README names them, too. */
export const PROVEN_KUBERNETES: readonly string[] = ['1.36', '1.37'];

/** Reports whether a server's `gitVersion`, like v1.36.3 or v1.36.3-eks-1a2b3c4, is one of these releases. */
export const isProven = (gitVersion: string): boolean =>
  PROVEN_KUBERNETES.includes(/^v(\d+\.\d+)/.exec(gitVersion)?.[1] ?? '');
