import { readdirSync, readFileSync, statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { dump, loadAll, YAMLException } from 'js-yaml';
import * as z from 'zod';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { matchesPattern } from '#shared/eviction/selectors.ts';
import { systemErrorCode } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { STATE_GROUP } from '#shared/state/objects/node-eviction.ts';
import { MAX_ALIASES, orFaults, PolicyError, parseAppliedPolicy } from '#shared/state/policy-document.ts';
import { type Access, accessSchema, clusterNameSchema, roleArn, secretArn } from '#shared/state/registry.ts';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { faultsOf, readAs } from '#shared/text/read-as.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

export interface DeclaredCluster {
  /** File, kind, and name, for sentences: "fleet/prod.yaml: Cluster prod". */
  readonly where: string;
  readonly name: ClusterName;
  readonly access: Access;
}

export interface DeclaredPolicy {
  readonly where: string;
  /** Names of clusters, or patterns in which each `*` matches any characters. */
  readonly clusters: readonly string[];
  /** The policy document that is stored. */
  readonly text: string;
}

/** The documents of a fleet. With faults, which are sentences, nothing may be applied. */
export interface FleetDocuments {
  /** Names of all clusters, also of those whose documents have faults. */
  readonly names: readonly ClusterName[];
  readonly clusters: readonly DeclaredCluster[];
  readonly policies: readonly DeclaredPolicy[];
  readonly faults: readonly string[];
}

export const NO_DOCUMENTS: FleetDocuments = { names: [], clusters: [], policies: [], faults: [] };

export interface FleetFile {
  readonly path: string;
  readonly text: string;
}

const GROUP = z.literal(STATE_GROUP, `must be ${STATE_GROUP}`);

const documentSchema = z.discriminatedUnion(
  'kind',
  [
    z.strictObject({
      apiVersion: GROUP,
      kind: z.literal('Cluster'),
      metadata: z.strictObject({ name: clusterNameSchema }),
      spec: z.strictObject({
        access: accessSchema({ object: z.strictObject as unknown as typeof z.object, roleArn, secretArn }),
      }),
    }),
    z.strictObject({
      apiVersion: GROUP,
      kind: z.literal('Policy'),
      metadata: z.strictObject({ name: z.string().min(1, 'must not be empty') }),
      spec: z.strictObject({
        clusters: z.array(z.string().min(1, 'must not be empty')).min(1, 'must name a cluster or a pattern'),
        policy: z.custom<object>((value) => typeof value === 'object', 'must be a mapping of settings'),
      }),
    }),
  ],
  { error: 'must be Cluster or Policy' },
);

/** Returns the files of a fleet; `undefined`: a policy document, which has no kind, or nothing. Throws `PolicyError`. */
export function fleetFiles(path: string): readonly FleetFile[] | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found?.isFile() && !found?.isDirectory()) return undefined;
  const files = readFiles(path);
  const hasKind = ({ document }: { readonly document: unknown }) => namesOf(document).kind !== undefined;
  const isOne = found.isDirectory() || files.flatMap((file) => documentsIn(file, [])).some(hasKind);
  return isOne ? files : undefined;
}

/** Reads a file, or the YAML files of a directory and its subdirectories. Throws `PolicyError`. */
export function readFiles(path: string): readonly FleetFile[] {
  try {
    const paths = statSync(path).isDirectory()
      ? readdirSync(path, { recursive: true, encoding: 'utf8' })
          .filter((name) => /\.ya?ml$/.test(name))
          .sort()
          .map((name) => join(path, name))
      : [path];
    return paths.map((each) => ({ path: each, text: readFileSync(each, 'utf8') }));
  } catch (error) {
    throw new PolicyError(
      `Can't read ${path} (${systemErrorCode(error)}). Specify a readable file or directory.`,
    );
  }
}

/** Parses the documents of all files. `now`: when policies are applied. */
export function parseFleet(files: readonly FleetFile[], now: EpochMs): FleetDocuments {
  const names: ClusterName[] = [];
  const clusters: DeclaredCluster[] = [];
  const policies: DeclaredPolicy[] = [];
  const faults: string[] = [];
  const paths = new Map<string, string>();
  for (const { path, document, number } of files.flatMap((file) => documentsIn(file, faults))) {
    const { data, error } = readAs(documentSchema, document);
    const { kind, name } = namesOf(document);
    const isNamed = typeof kind === 'string' && typeof name === 'string';
    const where = `${path}: ${isNamed ? escapeForDisplay(`${kind} ${name}`, 200) : `document ${number}`}`;
    if (kind === 'Cluster')
      names.push(...(clusterNameSchema.safeParse(name).data ? [clusterName(`${name}`)] : []));
    if (data === undefined) {
      faults.push(...faultsOf(error).map(({ field, fault }) => `${where}: ${field || 'it'} ${fault}.`));
      continue;
    }
    const key = JSON.stringify([data.kind, data.metadata.name]);
    const other = paths.get(key);
    if (other !== undefined)
      faults.push(`${where}: metadata.name is that of a document in ${other}, too: remove one of them.`);
    paths.set(key, path);
    if (data.kind === 'Cluster') {
      const { access } = data.spec;
      if (access.kind === 'local-context' && !isAbsolute(access.kubeconfig ?? '/'))
        faults.push(`${where}: spec.access.kubeconfig must be an absolute path.`);
      clusters.push({ where, name: data.metadata.name, access });
    } else {
      const text = dump(data.spec.policy);
      const { faults: found } = orFaults(() => parseAppliedPolicy(text, now));
      if (found.length === 0) policies.push({ where, clusters: data.spec.clusters, text });
      faults.push(...found.map((fault) => `${where}: ${fault.replace(/^policy\b/, 'spec.policy')}`));
    }
  }
  if (clusters.length + policies.length + faults.length === 0)
    faults.push('No documents found: specify a file, or a directory with *.yaml files.');
  return { names, clusters, policies, faults };
}

function documentsIn({ path, text }: FleetFile, faults: string[]) {
  try {
    return loadAll(text, { maxAliases: MAX_ALIASES })
      .map((document, index) => ({ path, document, number: index + 1 }))
      .filter(({ document }) => document !== null);
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const line = error.mark ? `line ${error.mark.line + 1}: ` : '';
    faults.push(`${path}: It is not valid YAML (${line}${error.reason}).`);
    return [];
  }
}

function namesOf(document: unknown): { readonly kind: unknown; readonly name: unknown } {
  const { kind, metadata } = Object(document);
  return { kind, name: Object(metadata).name };
}

/** Chooses the policy with the most specific pattern for each of these clusters, which are all that are known. */
export function resolvePolicies(
  { policies }: Pick<FleetDocuments, 'policies'>,
  names: readonly ClusterName[],
): { readonly policies: ReadonlyMap<ClusterName, DeclaredPolicy>; readonly faults: readonly string[] } {
  const chosen = new Map<ClusterName, DeclaredPolicy>();
  const faults = policies.flatMap(({ where, clusters }) =>
    clusters
      .filter((pattern) => !isDefault(pattern) && !names.some((name) => matchesPattern(pattern, name)))
      .map((pattern) =>
        pattern.includes('*')
          ? `${where}: spec.clusters: ${pattern} matches no cluster. Correct or remove it.`
          : `${where}: spec.clusters: cluster "${pattern}" not found. Correct the name, or add a document of kind Cluster.`,
      ),
  );
  for (const name of names) {
    const [first, second] = policies
      .flatMap((policy) => {
        const matching = policy.clusters.filter((pattern) => matchesPattern(pattern, name)).map(specificity);
        return matching.length === 0 ? [] : [{ policy, rank: Math.max(...matching) }];
      })
      .sort((a, b) => b.rank - a.rank);
    if (first) chosen.set(name, first.policy);
    if (first && first.rank === second?.rank)
      faults.push(
        `${second.policy.where}: spec.clusters is as specific for cluster ${name} as that of ${first.policy.where}. Name the cluster in one of them.`,
      );
  }
  return { policies: chosen, faults };
}

/** Such a pattern is for clusters that come later, too. */
const isDefault = (pattern: string): boolean => /^\*+$/.test(pattern);

/** A name is more specific than each pattern, and a pattern the more so, the more characters it has besides `*`. */
const specificity = (pattern: string): number =>
  pattern.includes('*') ? pattern.replaceAll('*', '').length : Number.POSITIVE_INFINITY;
