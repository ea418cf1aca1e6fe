import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve, sep } from 'node:path';
import { type MergedKubeconfig, mergeKubeconfigs } from './kubeconfig-context.ts';
import { KubeconfigError, systemErrorCode } from './kubeconfig-error.ts';
import { type Kubeconfig, parseKubeconfig } from './kubeconfig-text.ts';

/**
 * Reads `path`, or else what kubectl would: those files of `$KUBECONFIG` that exist, or `~/.kube/config`. Where
 * several files name the same thing, the first has it. The paths it returns are absolute. Throws `KubeconfigError`.
 */
export function readKubeconfig(path: string | undefined): MergedKubeconfig {
  const files = path === undefined ? defaultFiles() : [path];
  return mergeKubeconfigs(files.join(delimiter), files.map(readFile));
}

function defaultFiles(): readonly string[] {
  const listed = (process.env['KUBECONFIG'] ?? '').split(delimiter).filter(Boolean);
  const candidates = listed.length > 0 ? listed : [join(homedir(), '.kube', 'config')];
  const files = candidates.filter((file) => existsSync(file));
  if (files.length > 0) return files;
  throw new KubeconfigError(
    `There is no kubeconfig at ${candidates.join(' or ')}: name a file, or set KUBECONFIG to one that exists.`,
  );
}

function readFile(file: string): Kubeconfig {
  const data = parseKubeconfig(readText(file), file);
  const absolute = (path: string | undefined) => (path ? resolve(dirname(file), path) : undefined);
  return {
    ...data,
    clusters: data.clusters.map(({ name, cluster }) => ({
      name,
      cluster: { ...cluster, 'certificate-authority': absolute(cluster['certificate-authority']) },
    })),
    users: data.users.map(({ name, user }) => ({
      name,
      user: {
        ...user,
        'client-certificate': absolute(user['client-certificate']),
        'client-key': absolute(user['client-key']),
        tokenFile: absolute(user.tokenFile),
        exec: user.exec && { ...user.exec, command: absoluteCommand(user.exec.command, absolute) },
      },
    })),
  };
}

/** A bare command is looked up on PATH. */
const absoluteCommand = (command: string, absolute: (path: string) => string | undefined): string =>
  (command.includes(sep) ? absolute(command) : undefined) ?? command;

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new KubeconfigError(
      `The kubeconfig ${file} cannot be read (${systemErrorCode(error)}): check its path and permissions.`,
    );
  }
}
