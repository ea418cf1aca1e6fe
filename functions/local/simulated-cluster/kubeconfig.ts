import { rename, writeFile } from 'node:fs/promises';

/** The context, cluster and user of the simulated cluster's kubeconfig. */
export const SIMULATED_CONTEXT = 'simulated';

export interface KubeconfigContent {
  readonly server: string;
  /** PEM */
  readonly certificate: string;
  readonly token: string;
}

/** Writes a kubeconfig that only its owner can read, at once or not at all: a kubectl may be reading the old one. */
export async function writeKubeconfig(
  path: string,
  { server, certificate, token }: KubeconfigContent,
): Promise<void> {
  const content = `apiVersion: v1
kind: Config
current-context: ${SIMULATED_CONTEXT}
contexts:
- name: ${SIMULATED_CONTEXT}
  context:
    cluster: ${SIMULATED_CONTEXT}
    user: ${SIMULATED_CONTEXT}
    namespace: default
clusters:
- name: ${SIMULATED_CONTEXT}
  cluster:
    server: ${server}
    certificate-authority-data: ${Buffer.from(certificate).toString('base64')}
users:
- name: ${SIMULATED_CONTEXT}
  user:
    token: ${token}
`;
  const unfinished = `${path}.new`;
  await writeFile(unfinished, content, { mode: 0o600 });
  await rename(unfinished, path);
}
