import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve, sep } from 'node:path';
import { load, YAMLException } from 'js-yaml';
import * as z from 'zod';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { firstFault } from '#shared/text/first-fault.ts';
import { readAs } from '#shared/text/read-as.ts';

/** A kubeconfig, or what it refers to, is of no use; the message says what to change and holds no secret. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';

  /** What it quotes of the file is made to fit on a line. */
  constructor(message: string) {
    super(escapeForDisplay(message, MAX_MESSAGE));
  }
}

const MAX_MESSAGE = 1_000;

/** The code of a failed system call (`ENOENT`, `EACCES`); "" when it was none. */
export const systemErrorCode = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : '';

const text = z.string().optional();
/** `kubectl config` leaves null where a list is empty. */
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

/** A kubeconfig as it is written: paths as they stand there, fields that nobody here knows included. */
export type Kubeconfig = z.infer<typeof Kubeconfig>;
export type KubeconfigCluster = z.infer<typeof Cluster>;
export type KubeconfigUser = z.infer<typeof User>;
export type KubeconfigExec = z.infer<typeof Exec>;
export type KubeconfigContext = z.infer<typeof Context>;

/** Reads a kubeconfig's text; `source` says in messages which one it is. Throws `KubeconfigError`. */
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
    // The parser's own message quotes the file, tokens and all.
    const line = error instanceof YAMLException ? error.mark?.line : undefined;
    const where = line === undefined ? '' : ` (line ${line + 1})`;
    if (error instanceof YAMLException && error.reason.includes('maxAliases')) {
      // What refers to itself, or a thousand times to the same, has no end when it is written out.
      throw new KubeconfigError(`The kubeconfig ${source} has a YAML alias${where}. Write out its value.`);
    }
    throw new KubeconfigError(`The kubeconfig ${source} is not YAML${where}: correct or replace it.`);
  }
}

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
  const { source, clusters, users } = merged;
  const context = namedContext(merged, name);
  const cluster = clusters.get(context.cluster ?? '');
  const user = users.get(context.user ?? '');
  if (cluster === undefined) throw dangling(source, name, 'cluster', context.cluster);
  if (user === undefined) throw dangling(source, name, 'user', context.user);
  return { cluster, user };
}

/** Throws `KubeconfigError`, which lists the contexts there are, when there is none of that name. */
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

/** What a request would carry for anybody on the way to read; a client certificate is not shown without TLS. */
const SECRETS = ['token', 'tokenFile', 'exec', 'auth-provider', 'username', 'password'];

/**
 * Throws `KubeconfigError` when a context's cluster has no usable address: none at all, or one that would be told the
 * user's secret in clear text.
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
  // Not quoted: a URL may hold a password.
  throw new KubeconfigError(
    `The server of context "${name}" is not an http or https URL: write it as https://HOST:PORT.`,
  );
}

/** By which proxy a context's cluster is reached, if it says. Throws `KubeconfigError` for one that cannot be used. */
export function proxyOf(name: string, { cluster }: ResolvedContext): URL | undefined {
  const text = cluster['proxy-url'];
  if (!text) return undefined;
  const url = URL.parse(text);
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  // Not quoted: it may hold a password.
  throw new KubeconfigError(
    `The proxy-url of context "${name}" is not an http or https URL: write it as http://HOST:PORT.`,
  );
}

/**
 * Reads `path`, or else what kubectl would: those files of `$KUBECONFIG` that exist, or `~/.kube/config`. Where
 * several files name the same thing, the first has it. The paths it returns are absolute. Throws `KubeconfigError`.
 */
export function readKubeconfig(path: string | undefined): MergedKubeconfig {
  const files = path === undefined ? defaultFiles() : [path];
  return mergeKubeconfigs(files.join(delimiter), files.map(readFile));
}

/** Reports whether kubectl reads a file without being told to: one of `$KUBECONFIG`, or else `~/.kube/config`. */
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
