import { dump, load, YAMLException } from 'js-yaml';
import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import { PAUSE_INSTEAD, type Policy, policyDocument } from '#shared/eviction/policy.ts';
import { whenApplied } from '#shared/eviction/settings.ts';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { readAs } from '#shared/text/read-as.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** A policy document is invalid. Each fault is one sentence that names the setting and the fix; the message is all. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';
  readonly faults: readonly string[];

  /** Escapes and truncates text of the document, so that the message fits on a line. */
  constructor(...faults: readonly string[]) {
    super(escapeForDisplay(faults.join(' '), MAX_MESSAGE));
    this.faults = faults.slice(0, MAX_FAULTS).map((fault) => escapeForDisplay(fault, MAX_MESSAGE));
  }
}

const MAX_MESSAGE = 1_000;
const MAX_FAULTS = 20;

/** Characters of a document, which is stored with its cluster and read with each decision. */
export const MAX_DOCUMENT_CHARACTERS = 32_000;

/** Maximum of aliases: aliases of aliases let a short text expand to an enormous document. */
export const MAX_ALIASES = 20;

let jsonSchema: object | undefined;

/** Returns the same rules for editors: the JSON Schema of a policy document, made once. */
export function policyJsonSchema(): object {
  jsonSchema ??= z.toJSONSchema(policyDocument, { io: 'input', unrepresentable: 'any' });
  return jsonSchema;
}

/** Parses a policy document, in YAML. Omitted settings are as in `DEFAULT_POLICY`. Throws `PolicyError`. */
export const parsePolicyDocument = (written: string): Policy => read(written).policy;

/**
 * As {@link parsePolicyDocument}, for a document to be applied. Also throws `PolicyError` for names invalid in
 * Kubernetes, empty selectors and, with `now`, settings that have expired.
 */
export function parseAppliedPolicy(written: string, now?: EpochMs): Policy {
  const { policy, loaded } = read(written);
  const faults = [...policyFaults(policyDocument, loaded, now)];
  if (faults.length === 0) return policy;
  throw new PolicyError(...faults.map(({ path, fault }) => `${settingText(path)} ${fault}.`));
}

/** Also returns the loaded document: a parsed mapping with arbitrary keys has lost `__proto__`. */
function read(written: string): {
  readonly policy: Policy;
  readonly loaded: unknown;
} {
  if (written.length > MAX_DOCUMENT_CHARACTERS) {
    throw new PolicyError(`The policy has more than ${MAX_DOCUMENT_CHARACTERS} characters: shorten it.`);
  }
  const loaded = withoutNulls(loadYaml(written));
  const found = readAs(policyDocument, loaded);
  if (found.success) return { policy: found.data, loaded };
  throw new PolicyError(...found.error.issues.flatMap((issue) => sentences(issue)));
}

/** Returns the value, or else the faults of the policy document that it reads. */
export function orFaults<T>(read: () => T): { readonly value?: T; readonly faults: readonly string[] } {
  try {
    return { value: read(), faults: [] };
  } catch (error) {
    if (error instanceof PolicyError) return { faults: error.faults };
    throw error;
  }
}

/** Loads a document of any content. Throws `PolicyError`. */
export function loadYaml(written: string, maxAliases = MAX_ALIASES): unknown {
  try {
    return load(written, { maxAliases });
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    const where = error.mark ? `line ${error.mark.line + 1}: ` : '';
    throw new PolicyError(`The policy is not valid YAML (${where}${error.reason}).`);
  }
}

/** Mappings by name. Null is no value there, and dropping the name would widen a selector. */
const BY_NAME = ['matchLabels', 'annotations', 'tolerationSecondsOverrides'];
/** More levels than a policy has. */
const MAX_LEVELS = 10;

/**
 * Returns a document without settings that are null: in Kubernetes, null means absent. `include` keeps it: with all its
 * entries commented out, a policy must not include all pods.
 */
function withoutNulls(value: unknown, above: readonly unknown[] = []): unknown {
  if (value === null || typeof value !== 'object') return value;
  // An alias may repeat a part within itself.
  if (above.length > MAX_LEVELS || above.includes(value)) return value;
  const within = (part: unknown) => withoutNulls(part, [...above, value]);
  if (Array.isArray(value)) return value.map(within);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, setting]) => setting !== null || name === 'include')
      .map(([name, setting]) => [name, BY_NAME.includes(name) ? setting : within(setting)]),
  );
}

function sentences(issue: z.core.$ZodIssue, above: readonly PropertyKey[] = []): readonly string[] {
  const path = [...above, ...issue.path];
  if (issue.code === 'invalid_union') {
    // For a mapping, errors inside it are more helpful than the alternatives to a mapping.
    const inner = issue.errors
      .flat()
      .filter(({ code, path: at }) => at.length > 0 || code === 'unrecognized_keys');
    if (inner.length > 0) return inner.flatMap((each) => sentences(each, path));
  }
  if (issue.code !== 'unrecognized_keys') return [`${settingText(path)} ${issue.message}.`];
  return issue.keys.map((key) =>
    path.length === 0 && key === 'pausedUntil'
      ? `policy has no setting pausedUntil: ${PAUSE_INSTEAD}.`
      : `${settingText(path)} has no setting ${escapeForDisplay(key, 100)}: ${issue.message}.`,
  );
}

function settingText(path: readonly PropertyKey[]): string {
  const name = path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : `${text}.${String(part)}`),
    'policy',
  );
  return escapeForDisplay(name, 300);
}

export const documentOf = (policy: Policy): Readonly<Record<string, unknown>> =>
  defined(z.encode(policyDocument, policy));

export const policyText = (policy: Policy): string => dump(documentOf(policy));

/** Returns the schema of the written value in a schema that only converts it, or allows for its absence. */
function wrappedIn(schema: z.core.$ZodType): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodCodec) return schema.def.in;
  const isWrapper =
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodExactOptional ||
    schema instanceof z.ZodPrefault;
  return isWrapper ? schema.def.innerType : undefined;
}

interface PolicyFault {
  readonly path: readonly PropertyKey[];
  readonly fault: string;
}

/** With `now`, also settings that have expired by then. */
function* policyFaults(
  schema: z.core.$ZodType,
  written: unknown,
  now: EpochMs | undefined,
  path: readonly PropertyKey[] = [],
): Iterable<PolicyFault> {
  if (written === undefined) return;
  const faults = whenApplied.get(schema)?.faults(written as never, now) ?? [];
  yield* faults.map((fault) => ({ path, fault }));
  const within = (inner: z.core.$ZodType, part: unknown, ...at: readonly PropertyKey[]) =>
    policyFaults(inner, part, now, [...path, ...at]);
  const wrapped = wrappedIn(schema);
  if (wrapped) yield* within(wrapped, written);
  if (schema instanceof z.ZodUnion) for (const option of schema.def.options) yield* within(option, written);
  if (schema instanceof z.ZodObject)
    for (const [name, inner] of Object.entries(schema.shape))
      yield* within(inner, (written as Readonly<Record<string, unknown>>)[name], name);
  if (schema instanceof z.ZodArray)
    for (const [index, item] of (written as readonly unknown[]).entries())
      yield* within(schema.def.element, item, index);
  if (schema instanceof z.ZodRecord)
    for (const [key, value] of Object.entries(written as object)) {
      yield* within(schema.def.keyType, key, key);
      yield* within(schema.def.valueType, value, key);
    }
}
