import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve, sep } from 'node:path';
import { load, YAMLException } from 'js-yaml';
import * as z from 'zod';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { firstFault, readAs } from '#shared/text/read-as.ts';

/** A kubeconfig, or a file that it refers to, is unusable. The message describes the remediation and contains no secret. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';

  /** Quoted text of the file is escaped to fit on a line. */
  constructor(message: string) {
    super(escapeForDisplay(message, MAX_MESSAGE));
  }
}

const MAX_MESSAGE = 1_000;

/** Returns the code of a failed system call (`ENOENT`, `EACCES`); "": it was not a system call. */
export const systemErrorCode = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';

const text = z.string().optional();
/** `kubectl config` writes null for an empty list. */
const listOf = <T extends z.ZodType>(item: T) =>
  z
    .array(item)
    .nullish()
    .transform((items) => items ?? []);

const Cluster = z.looseObject({
  server: z.string().default(''),
  'certificate-authority': text,
  'proxy-url': text,
});

const Exec = z.looseObject({
  apiVersion: z.string().default('client.authentication.k8s.io/v1'),
  command: z.string(),
  args: listOf(z.string()),
  env: listOf(z.object({ name: z.string(), value: z.string() })),
});

const User = z.looseObject({
  'client-certificate': text,
  'client-key': text,
  token: text,
  tokenFile: text,
  exec: Exec.nullish(),
});

const Context = z.looseObject({ cluster: text, user: text });

const Kubeconfig = z.looseObject({
  'current-context': text,
  clusters: listOf(z.object({ name: z.string(), cluster: Cluster })),
  users: listOf(z.object({ name: z.string(), user: User.nullish().transform((user) => user ?? {}) })),
  contexts: listOf(z.object({ name: z.string(), context: Context })),
});

/** A kubeconfig as written: paths are unchanged, and unknown fields are included. */
export type Kubeconfig = z.infer<typeof Kubeconfig>;
export type KubeconfigCluster = z.infer<typeof Cluster>;
export type KubeconfigUser = z.infer<typeof User>;
export type KubeconfigExec = z.infer<typeof Exec>;
export type KubeconfigContext = z.infer<typeof Context>;

/** Reads a kubeconfig's text. `source` names the kubeconfig in messages. Throws `KubeconfigError`. */
export function parseKubeconfig(content: string, source: string): Kubeconfig {
  const { data, error } = readAs(Kubeconfig, parseYaml(content, source));
  if (data !== undefined) return data;
  const { field, fault } = firstFault(error);
  throw new KubeconfigError(`The kubeconfig ${source} is wrong at ${field || 'its top'}: ${fault}.`);
}

function parseYaml(content: string, source: string): unknown {
  try {
    return load(content, { maxAliases: 0 });
  } catch (error) {
    // The parser's own message quotes the file, including its tokens.
    const line = error instanceof YAMLException ? error.mark?.line : undefined;
    const where = line === undefined ? '' : ` (line ${line + 1})`;
    if (error instanceof YAMLException && error.reason.includes('maxAliases')) {
      // An alias of itself, or a thousand aliases of the same value, would expand without end.
      throw new KubeconfigError(`The kubeconfig ${source} has a YAML alias${where}. Write out its value.`);
    }
    throw new KubeconfigError(`The kubeconfig ${source} is not YAML${where}: correct or replace it.`);
  }
}

/** The merged contents of one or several kubeconfigs. */
export interface MergedKubeconfig {
  /** Its paths, for messages. */
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

/** Merges kubeconfigs. If several of them (or lines of one) define the same name, the first definition counts. */
export function mergeKubeconfigs(source: string, kubeconfigs: readonly Kubeconfig[]): MergedKubeconfig {
  return {
    source,
    currentContext: kubeconfigs.find((each) => each['current-context'])?.['current-context'],
    clusters: firstOfEach(kubeconfigs.flatMap(({ clusters }) => clusters.map((c) => [c.name, c.cluster]))),
    users: firstOfEach(kubeconfigs.flatMap(({ users }) => users.map((u) => [u.name, u.user]))),
    contexts: firstOfEach(kubeconfigs.flatMap(({ contexts }) => contexts.map((c) => [c.name, c.context]))),
  };
}

/** Returns a map with the first of equal keys: a map keeps the last one, so the order is reversed. */
const firstOfEach = <T>(named: readonly (readonly [string, T])[]): ReadonlyMap<string, T> =>
  new Map(named.toReversed());

/** Returns the name of the current context. Throws `KubeconfigError` if there is none. */
export function currentContext({ currentContext: name, source }: MergedKubeconfig): string {
  if (name) return name;
  throw new KubeconfigError(`The kubeconfig ${source} has no current context: name the contexts to manage.`);
}

/**
 * Returns the cluster and the user of a context. Throws `KubeconfigError` if there is no such context, or if it names
 * a missing cluster or user.
 */
export function resolveContext(merged: MergedKubeconfig, name: string): ResolvedContext {
  const { source, clusters, users } = merged;
  const context = namedContext(merged, name);
  const cluster = clusters.get(context.cluster ?? '');
  const user = users.get(context.user ?? '');
  if (cluster === undefined) throw dangling(source, name, 'cluster', context.cluster);
  if (user === undefined) throw dangling(source, name, 'user', context.user);
  return { cluster, user };
}

/** Returns a context by name. Throws `KubeconfigError`, which lists the existing contexts, if there is none. */
export function namedContext({ source, contexts }: MergedKubeconfig, name: string): KubeconfigContext {
  const context = contexts.get(name);
  if (context !== undefined) return context;
  const known = [...contexts.keys()].join(', ') || 'none';
  throw new KubeconfigError(`The kubeconfig ${source} has no context "${name}": it has ${known}.`);
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

/** Fields that plain http would show to anybody on the network. A client certificate is not sent without TLS. */
const SECRETS = ['token', 'tokenFile', 'exec', 'auth-provider', 'username', 'password'];

/**
 * Returns the address of a context's cluster. Throws `KubeconfigError` if there is none that is usable, or if it
 * would receive the user's secret in clear text.
 */
export function serverUrl(name: string, { cluster, user }: ResolvedContext): URL {
  const url = URL.parse(cluster.server);
  if (url?.protocol === 'https:') return url;
  if (url?.protocol === 'http:') {
    const secret = SECRETS.find((field) => user[field]);
    if (secret === undefined) return url;
    throw new KubeconfigError(
      `The server of context "${name}" is plain http (${url.host}), which would show its user's ${secret} to anybody on the way: write it as https://${url.host}.`,
    );
  }
  // The value is not quoted, because it may contain a password.
  throw new KubeconfigError(
    `The server of context "${name}" is not an http or https URL: write it as https://HOST:PORT.`,
  );
}

/** Returns the proxy of a context's cluster, if it has one. Throws `KubeconfigError` for a proxy that cannot be used. */
export function proxyOf(name: string, { cluster }: ResolvedContext): URL | undefined {
  const text = cluster['proxy-url'];
  if (!text) return undefined;
  const url = URL.parse(text);
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  // The value is not quoted, because it may contain a password.
  throw new KubeconfigError(
    `The proxy-url of context "${name}" is not an http or https URL: write it as http://HOST:PORT.`,
  );
}

/**
 * Reads `path`, or else kubectl's defaults: the existing files of `$KUBECONFIG`, or `~/.kube/config`. If several
 * files define the same name, the first definition counts. Returned paths are absolute. Throws `KubeconfigError`.
 */
export function readKubeconfig(path: string | undefined): MergedKubeconfig {
  const files = path === undefined ? defaultFiles() : [path];
  return mergeKubeconfigs(files.join(delimiter), files.map(readFile));
}

/** Reports whether kubectl reads a file by default: one of `$KUBECONFIG`, or else `~/.kube/config`. */
export const isDefaultKubeconfig = (path: string): boolean =>
  defaultCandidates().some((file) => resolve(file) === resolve(path));

function defaultCandidates(): readonly string[] {
  const listed = (process.env['KUBECONFIG'] ?? '').split(delimiter).filter(Boolean);
  return listed.length > 0 ? listed : [join(homedir(), '.kube', 'config')];
}

function defaultFiles(): readonly string[] {
  const candidates = defaultCandidates();
  const files = candidates.filter((file) => existsSync(file));
  if (files.length > 0) return files;
  throw new KubeconfigError(
    `Kubeconfig not found at ${candidates.join(' or ')}. Specify --kubeconfig FILE, or set KUBECONFIG.`,
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

/** Returns the absolute path of a command. A bare command is looked up on PATH. */
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
