import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve, sep } from 'node:path';
import { loadAll, YAMLException } from 'js-yaml';
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

/** kubectl takes a field that is null or empty as absent. */
const isPresent = (value: unknown): boolean =>
  value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);
const withoutEmpty = (value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).filter(([, field]) => isPresent(field)))
    : (value ?? {});
const fields = <T extends z.ZodRawShape>(shape: T) => z.preprocess(withoutEmpty, z.looseObject(shape));
const listOf = <T extends z.ZodType>(item: T) => z.array(item).default([]);

const text = z.string().optional();
const flag = z.boolean().optional();

const Cluster = fields({
  server: z.string().default(''),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'insecure-skip-tls-verify': flag,
  'tls-server-name': text,
  'proxy-url': text,
  'disable-compression': flag,
  extensions: listOf(fields({ name: text, extension: z.unknown() })),
});

const Exec = fields({
  apiVersion: z.string().default('client.authentication.k8s.io/v1'),
  command: z.string(),
  args: listOf(z.string()),
  env: listOf(fields({ name: z.string(), value: z.string().default('') })),
  interactiveMode: text,
  provideClusterInfo: flag,
  installHint: text,
});

const User = fields({
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  token: text,
  tokenFile: text,
  username: text,
  password: text,
  as: text,
  'as-uid': text,
  'as-groups': listOf(z.string()),
  'as-user-extra': z
    .record(
      z.string(),
      z.preprocess((value) => value ?? [], z.array(z.string())),
    )
    .default({}),
  exec: Exec.optional(),
});

const Context = fields({ cluster: text, user: text });

/** Entries are read when a context needs them: another one, of whatever form, does no harm. */
const entries = (kind: 'cluster' | 'user' | 'context') =>
  listOf(
    fields({ name: z.string().default('') }).transform(
      ({ name, [kind]: entry }): readonly [string, unknown] => [name, entry],
    ),
  );

const Kubeconfig = fields({
  'current-context': text,
  clusters: entries('cluster'),
  users: entries('user'),
  contexts: entries('context'),
});

/** A kubeconfig as written: its entries are unread. */
export type Kubeconfig = z.infer<typeof Kubeconfig>;
export type KubeconfigCluster = z.infer<typeof Cluster>;
export type KubeconfigUser = z.infer<typeof User>;
export type KubeconfigExec = z.infer<typeof Exec>;
export type KubeconfigContext = z.infer<typeof Context>;

/** Reads a kubeconfig's text. `source` names the kubeconfig in messages. Throws `KubeconfigError`. */
export function parseKubeconfig(content: string, source: string): Kubeconfig {
  return read(Kubeconfig, parseYaml(content, source), `The kubeconfig ${source}`);
}

/** Throws `KubeconfigError`, which begins with `what`, for a value of another form. */
function read<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const { success, data, error } = readAs(schema, value);
  if (success) return data;
  const { field, fault } = firstFault(error);
  throw new KubeconfigError(`${what} is wrong at ${field || 'its top'}: ${fault}.`);
}

/** Aliases refer to values and do not copy them, so only their number must be limited. */
const MAX_ALIASES = 1_000;

/** Like kubectl, takes the first document, and the last of several equal keys. */
function parseYaml(content: string, source: string): unknown {
  try {
    return loadAll(content, { maxAliases: MAX_ALIASES, json: true })[0];
  } catch (error) {
    // The parser's own message quotes the file, including its tokens.
    const line = error instanceof YAMLException ? error.mark?.line : undefined;
    const where = line === undefined ? '' : ` (line ${line + 1})`;
    throw new KubeconfigError(`The kubeconfig ${source} is not YAML${where}: correct or replace it.`);
  }
}

/** The merged contents of one or several kubeconfigs. */
export interface MergedKubeconfig {
  /** Its paths, for messages. */
  readonly source: string;
  readonly currentContext: string | undefined;
  readonly clusters: ReadonlyMap<string, Entry>;
  readonly users: ReadonlyMap<string, Entry>;
  readonly contexts: ReadonlyMap<string, Entry>;
}

interface Entry {
  readonly value: unknown;
  /** The directory of its file, to which its paths are relative; absent: it has no file. */
  readonly directory: string | undefined;
}

interface FoundKubeconfig extends Kubeconfig {
  readonly directory?: string;
}

export interface ResolvedContext {
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
}

/** Merges kubeconfigs. If several of them (or lines of one) define the same name, the first definition counts. */
export function mergeKubeconfigs(source: string, kubeconfigs: readonly FoundKubeconfig[]): MergedKubeconfig {
  const merged = (section: 'clusters' | 'users' | 'contexts') =>
    firstOfEach(
      kubeconfigs.flatMap(({ [section]: named, directory }) =>
        named.map(([name, value]) => [name, { value, directory }] as const),
      ),
    );
  return {
    source,
    currentContext: kubeconfigs.find((each) => each['current-context'])?.['current-context'],
    clusters: merged('clusters'),
    users: merged('users'),
    contexts: merged('contexts'),
  };
}

/** A map keeps the last of equal keys, so the order is reversed. */
const firstOfEach = <T>(named: readonly (readonly [string, T])[]): ReadonlyMap<string, T> =>
  new Map(named.toReversed());

/** Returns the name of the current context. Throws `KubeconfigError` if there is none. */
export function currentContext({ currentContext: name, source }: MergedKubeconfig): string {
  if (name) return name;
  throw new KubeconfigError(`The kubeconfig ${source} has no current context: name the contexts to manage.`);
}

/**
 * Paths are absolute. Like kubectl, a context without an existing user has no credentials. Throws `KubeconfigError` for
 * a missing context or cluster, or another form.
 */
export function resolveContext(merged: MergedKubeconfig, name: string): ResolvedContext {
  const { source, clusters, users } = merged;
  const { cluster: clusterName = '', user: userName = '' } = namedContext(merged, name);
  const found = clusters.get(clusterName);
  if (found === undefined) {
    const what = clusterName ? `names the cluster "${clusterName}", which is not there` : 'names no cluster';
    throw new KubeconfigError(`Context "${name}" of the kubeconfig ${source} ${what}: correct the context.`);
  }
  const place = `of the kubeconfig ${source}`;
  const cluster = read(Cluster, found.value, `The cluster "${clusterName}" ${place}`);
  const owner = users.get(userName);
  const user = read(User, owner?.value, `The user "${userName}" ${place}`);
  return { cluster: withPaths(cluster, found), user: withUserPaths(user, owner) };
}

/** Returns a context by name. Throws `KubeconfigError`, which lists the existing contexts, if there is none. */
export function namedContext({ source, contexts }: MergedKubeconfig, name: string): KubeconfigContext {
  const context = contexts.get(name);
  if (context !== undefined)
    return read(Context, context.value, `The context "${name}" of the kubeconfig ${source}`);
  const known = [...contexts.keys()].join(', ') || 'none';
  throw new KubeconfigError(`The kubeconfig ${source} has no context "${name}": it has ${known}.`);
}

const PATHS = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'];

function withPaths<T extends Readonly<Record<string, unknown>>>(entry: T, { directory }: Entry): T {
  if (directory === undefined) return entry;
  const absolute = Object.entries(entry).map(([field, value]) =>
    PATHS.includes(field) && typeof value === 'string' ? [field, resolve(directory, value)] : [field, value],
  );
  return Object.fromEntries(absolute);
}

function withUserPaths(user: KubeconfigUser, found: Entry | undefined): KubeconfigUser {
  if (found?.directory === undefined) return user;
  const { exec, ...rest } = withPaths(user, found);
  // A bare command is looked up on PATH.
  const command = exec?.command.includes(sep) ? resolve(found.directory, exec.command) : exec?.command;
  return { ...rest, ...(exec && command ? { exec: { ...exec, command } } : {}) };
}

/** Fields that plain http would show to anybody on the network. A client certificate is not sent without TLS. */
const SECRETS = ['token', 'tokenFile', 'exec', 'auth-provider', 'username', 'password'];

/** A cluster's address. Throws `KubeconfigError` if it is unusable, or would receive a secret in clear text. */
export function serverUrl(name: string, { cluster, user }: ResolvedContext): URL {
  const url = URL.parse(cluster.server);
  if (url?.protocol === 'https:') return url;
  if (url?.protocol === 'http:') {
    const secret = SECRETS.find((field) => user[field] !== undefined);
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
 * Reads `path`, or the existing files of `$KUBECONFIG`, or `~/.kube/config`; the first definition of a name counts.
 * Paths are absolute. Throws `KubeconfigError`.
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
  if (listed.length > 0) return listed;
  try {
    return [join(homedir(), '.kube', 'config')];
  } catch {
    // The operating system knows no home of a random UID, as containers have.
    return [];
  }
}

function defaultFiles(): readonly string[] {
  const candidates = defaultCandidates();
  const files = candidates.filter((file) => existsSync(file));
  if (files.length > 0) return files;
  const where =
    candidates.length > 0 ? ` at ${candidates.join(' or ')}` : ': this user has no home directory';
  throw new KubeconfigError(`Kubeconfig not found${where}. Specify --kubeconfig FILE, or set KUBECONFIG.`);
}

const readFile = (file: string): FoundKubeconfig => ({
  ...parseKubeconfig(readText(file), file),
  directory: dirname(file),
});

function readText(file: string): string {
  try {
    return decoded(readFileSync(file));
  } catch (error) {
    throw new KubeconfigError(
      `The kubeconfig ${file} cannot be read (${systemErrorCode(error)}): check its path and permissions.`,
    );
  }
}

/** Decodes UTF-16, too, which PowerShell writes, by its byte order mark. */
function decoded(bytes: Buffer): string {
  const mark = bytes.subarray(0, 2).toString('hex');
  return new TextDecoder(mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8').decode(bytes);
}
