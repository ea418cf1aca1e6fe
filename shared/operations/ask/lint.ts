import { YAMLException } from 'js-yaml';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { type Finding, LINT_RULES, lintTemplate } from '#shared/explain/lint.ts';
import { controllerOf } from '#shared/kubernetes/controller-of.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import { INT64_MAX, INT64_MIN } from '#shared/taints/int64.ts';
import type { MatchOptions, Toleration } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';
import type { ContextFleet, Fleet } from '../fleet/fleet.ts';
import { readPlacedYaml } from './placed-yaml.ts';

/** The object of a finding. */
export interface LintedObject {
  /** Absent: the object has no namespace, or the manifest leaves the namespace open. */
  readonly namespace?: string;
  readonly kind: string;
  readonly name: string;
}

export interface LintFinding extends Finding {
  readonly object: LintedObject;
  /** Location in a manifest. */
  readonly at?: { readonly file: string; readonly line: number };
}

export interface LintReport {
  /** Number of checked objects: those with a pod template. */
  readonly objects: number;
  readonly findings: readonly LintFinding[];
  /** Data that could not be read, with the consequence, one sentence each. */
  readonly unknown: readonly string[];
}

export interface ManifestFile {
  readonly name: string;
  readonly text: string;
}

/**
 * Finds ineffective tolerations in manifests: YAML documents or JSON. Objects without a pod template are
 * ignored.
 */
export function lintManifests(files: readonly ManifestFile[], matching: MatchOptions): LintReport {
  const linted = files.flatMap(({ name: file, text }) => {
    try {
      return readPlacedYaml(text).flatMap(({ value, lineOf }) =>
        objectsIn(value).map(({ json, path }) => {
          const spec = podSpecOf(json);
          if (!spec) return undefined;
          const tolerationsAt = [...path, ...spec.path, 'tolerations'];
          return lintPodSpec(json, spec.json, matching).map(
            ({ toleration = 0, ...finding }): LintFinding => ({
              ...finding,
              toleration,
              at: { file, line: lineOf([...tolerationsAt, toleration]) },
            }),
          );
        }),
      );
    } catch (error) {
      if (!(error instanceof YAMLException)) throw error;
      return [[unreadable(file, error)]];
    }
  });
  const found = linted.filter((findings) => findings !== undefined);
  return { objects: found.length, findings: found.flat(), unknown: [] };
}

function unreadable(file: string, { reason, mark }: YAMLException): LintFinding {
  const rule = 'unreadable-manifest';
  const { level, remediation } = LINT_RULES[rule];
  const message = `Not YAML or JSON: ${reason}.`;
  return {
    ...{ rule, level, message, remediation, object: { kind: 'File', name: file } },
    at: { file, line: (mark?.line ?? 0) + 1 },
  };
}

/** A check of a cluster. */
export interface LintQuestion {
  readonly cluster: ClusterName;
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined;
  readonly matching: MatchOptions;
}

/**
 * Finds ineffective tolerations in a cluster. Workloads are checked by their templates. Pods that no
 * controller of Kubernetes owns are checked directly; pods of one owner with the same tolerations are checked
 * once. Rejects with `ApiError` if the API server is unreachable.
 */
export async function lintCluster(
  fleet: Fleet | ContextFleet,
  { cluster, namespace, matching }: LintQuestion,
  { now, progress }: { now(): EpochMs; progress(text: string): void },
): Promise<LintReport> {
  const live = await fleet.cluster(cluster);
  try {
    const { objects } = live;
    const unknown: string[] = [];
    const specs: { readonly json: Json; readonly spec: Json }[] = [];
    for (const { kind, group, plural } of SOURCES) {
      progress(`reading ${plural}`);
      const path = `${group}${namespace === undefined ? '' : `/namespaces/${namespace}`}/${plural}`;
      for await (const item of readable(objects, path, unknown)) {
        if (isRunByAnother(item)) continue;
        const json = ownedAs(kind, item);
        const spec = podSpecOf({ ...item, kind });
        if (spec) specs.push({ json, spec: spec.json });
      }
    }
    const distinct = new Map(specs.map((each) => [distinctKey(each), each]));
    progress('reading nodes');
    const tolerated = [...distinct.values()].flatMap(({ spec }) =>
      tolerationsOf(spec).flatMap(({ key }) => key ?? []),
    );
    const keys = await knownKeys(fleet, objects, { cluster, tolerated, now: now(), unknown });
    const findings = [...distinct.values()].flatMap(({ json, spec }) =>
      lintPodSpec(json, spec, matching, keys),
    );
    return { objects: distinct.size, findings, unknown };
  } finally {
    live.close();
  }
}

type Json = Readonly<Record<string, unknown>>;
type Path = readonly (string | number)[];

/** Collections of objects that define pods. A Deployment precedes its ReplicaSets. */
const SOURCES = [
  { kind: 'Deployment', group: '/apis/apps/v1', plural: 'deployments' },
  { kind: 'StatefulSet', group: '/apis/apps/v1', plural: 'statefulsets' },
  { kind: 'DaemonSet', group: '/apis/apps/v1', plural: 'daemonsets' },
  { kind: 'ReplicaSet', group: '/apis/apps/v1', plural: 'replicasets' },
  { kind: 'CronJob', group: '/apis/batch/v1', plural: 'cronjobs' },
  { kind: 'Job', group: '/apis/batch/v1', plural: 'jobs' },
  { kind: 'ReplicationController', group: '/api/v1', plural: 'replicationcontrollers' },
  { kind: 'Pod', group: '/api/v1', plural: 'pods' },
] as const;

/**
 * Owners whose objects are skipped: the controllers above, whose own objects are checked, and nodes, whose
 * static pods cannot be changed in the cluster.
 */
const LOOKED_AT: readonly string[] = [...SOURCES.map(({ kind }) => kind), 'Node'];

const ownerOf = (json: Json): Json | undefined => controllerOf(fieldsOf(json['metadata'])['ownerReferences']);

const isRunByAnother = (json: Json): boolean =>
  LOOKED_AT.includes(textOf(ownerOf(json)?.['kind'])) || isScaledAway(json);

/** Reports whether another controller scaled the object to zero, such as a ReplicaSet of an older version. */
const isScaledAway = (json: Json): boolean =>
  ownerOf(json) !== undefined && fieldsOf(json['spec'])['replicas'] === 0;

/**
 * Returns an object with its kind. If an unknown controller owns it, returns that controller's kind and name.
 */
function ownedAs(kind: string, json: Json): Json {
  const owner = ownerOf(json);
  const metadata = fieldsOf(json['metadata']);
  if (!owner) return { kind, metadata };
  const { kind: ofOwner, name } = owner;
  return { kind: ofOwner, metadata: { ...metadata, name } };
}

const distinctKey = ({ json, spec }: { readonly json: Json; readonly spec: Json }): string =>
  `${JSON.stringify(objectOf(json))} ${JSON.stringify(spec['tolerations'], (_, value) =>
    typeof value === 'bigint' ? String(value) : value,
  )}`;

/** Returns an object, or the objects of a List, with their paths. */
function objectsIn(value: unknown, path: Path = []): readonly { readonly json: Json; readonly path: Path }[] {
  const json = fieldsOf(value);
  if (!textOf(json['kind']).endsWith('List')) return [{ json, path }];
  return itemsOf(json['items']).flatMap((item, index) => objectsIn(item, [...path, 'items', index]));
}

/** Paths of the pod spec in kinds that don't follow the common pattern. */
const POD_SPECS: Readonly<Record<string, Path>> = {
  Pod: ['spec'],
  PodTemplate: ['template', 'spec'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template', 'spec'],
};
/** Path of the pod spec in other controllers, including those outside Kubernetes. */
const IN_TEMPLATE: Path = ['spec', 'template', 'spec'];

/** Returns the pod spec of an object. `undefined`: the object creates no pods. */
function podSpecOf(json: Json): { readonly json: Json; readonly path: Path } | undefined {
  const path = POD_SPECS[textOf(json['kind'])] ?? IN_TEMPLATE;
  const spec = fieldsOf(path.reduce<unknown>((at, part) => fieldsOf(at)[part], json));
  return Array.isArray(spec['containers']) ? { json: spec, path } : undefined;
}

const lintPodSpec = (
  json: Json,
  spec: Json,
  matching: MatchOptions,
  keys?: ReadonlySet<string>,
): readonly LintFinding[] =>
  lintTemplate(
    { kind: textOf(json['kind']), tolerations: tolerationsOf(spec) },
    { matching, ...(keys ? { keys } : {}) },
  ).map((finding) => ({ ...finding, object: objectOf(json) }));

function objectOf(json: Json): LintedObject {
  const { name, generateName, namespace } = fieldsOf(json['metadata']);
  return {
    ...(namespace ? { namespace: textOf(namespace) } : {}),
    kind: textOf(json['kind']),
    name: textOf(name) || textOf(generateName),
  };
}

const tolerationsOf = (spec: Json): readonly Toleration[] => itemsOf(spec['tolerations']).map(readToleration);

/**
 * Reads a toleration as written. Numbers and booleans are converted to text: the API server rejects them
 * anyway.
 */
function readToleration(json: unknown): Toleration {
  const { key, operator, value, effect, tolerationSeconds } = fieldsOf(json);
  const texts = { key, operator, value, effect };
  const given = Object.entries(texts).filter(([, text]) => text !== undefined && text !== null);
  const isNumber = typeof tolerationSeconds === 'number' && Number.isFinite(tolerationSeconds);
  const seconds = isNumber ? BigInt(Math.trunc(tolerationSeconds)) : tolerationSeconds;
  return {
    ...Object.fromEntries(given.map(([name, text]) => [name, String(text)])),
    ...(typeof seconds === 'bigint' ? { tolerationSeconds: clamped(seconds) } : {}),
  };
}

/** Limits seconds to int64: a YAML parser may have rounded the largest int64 up. */
const clamped = (seconds: bigint): bigint =>
  seconds > INT64_MAX ? INT64_MAX : seconds < INT64_MIN ? INT64_MIN : seconds;

/**
 * Yields the items of a collection. Yields none if the collection may not be read, or if the server doesn't
 * serve the kind.
 */
async function* readable(objects: ClusterObjects, path: string, unknown: string[]): AsyncGenerator<Json> {
  try {
    yield* objects.list(path);
  } catch (error) {
    if (!(error instanceof ApiError) || ![403, 404].includes(error.status)) throw error;
    if (error.status === 404) return;
    unknown.push(`${path} cannot be read and is not checked: ${error.message}`);
  }
}

/** Number of history entries that are searched for keys that no node has now. */
const HISTORY_ENTRIES = 10_000;

/**
 * Returns the keys of taints that nodes have now or had in the stored history. `undefined`: nodes cannot be
 * read.
 */
async function knownKeys(
  fleet: Fleet | ContextFleet,
  objects: ClusterObjects,
  {
    cluster,
    tolerated,
    now,
    unknown,
  }: {
    readonly cluster: ClusterName;
    readonly tolerated: readonly string[];
    readonly now: EpochMs;
    readonly unknown: string[];
  },
): Promise<ReadonlySet<string> | undefined> {
  const keys = new Set<string>();
  const before = unknown.length;
  for await (const { spec } of readable(objects, '/api/v1/nodes', unknown))
    for (const taint of itemsOf(fieldsOf(spec)['taints'])) keys.add(textOf(fieldsOf(taint)['key']));
  if (unknown.length > before) return undefined;
  if (fleet.kind === 'context') return keys;
  const sought = new Set(tolerated.filter((key) => !keys.has(key)));
  let left = HISTORY_ENTRIES;
  if (sought.size > 0)
    for await (const { reasons } of fleet.history.entries({ cluster, from: 0, to: now })) {
      for (const { taint } of reasons) {
        keys.add(taint.key);
        sought.delete(taint.key);
      }
      left -= 1;
      if (sought.size === 0 || left === 0) break;
    }
  return keys;
}
