import { isDeepStrictEqual } from 'node:util';
import { dump, load, YAMLException } from 'js-yaml';
import * as z from 'zod';
import { type Policy, policyDocument } from '#shared/eviction/policy.ts';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { readAs } from '#shared/text/read-as.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { momentText } from '#shared/time/written.ts';
import { policyFaults } from './policy-faults.ts';
import { type FormerName, withPresentNames } from './policy-names.ts';

/** A policy document that cannot be read; the message is one sentence that names the setting and the fix. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';

  /** What it quotes of the document is made to fit on a line. */
  constructor(message: string) {
    super(escapeForDisplay(message, MAX_MESSAGE));
  }
}

const MAX_MESSAGE = 1_000;

/** Characters of a document: it is stored with its cluster, and read with each decision. */
export const MAX_DOCUMENT_CHARACTERS = 32_000;

/** Aliases of aliases make a short text say more than anybody has the time to read. */
const MAX_ALIASES = 20;

/** The same rules for editors: JSON Schema of a policy document. */
export const policyJsonSchema = (): object =>
  // Equivalent mutant (StringLiteral): Zod asks only whether it is to throw.
  z.toJSONSchema(policyDocument, { io: 'input', unrepresentable: 'any' });

/** Reads a policy document, YAML. What it leaves out is as in `DEFAULT_POLICY`. Throws `PolicyError`. */
export const parsePolicyDocument = (written: string): Policy => read(written).policy;

/**
 * As {@link parsePolicyDocument}, for a document that is to be applied. Throws `PolicyError`, too, for names that nothing in
 * Kubernetes can have and for selectors that are empty; with `now` also for what is over by then.
 */
export function parseAppliedPolicy(written: string, now?: EpochMs): Policy {
  const { policy, loaded } = read(written);
  const [first] = policyFaults(policyDocument, loaded, now);
  if (first) throw new PolicyError(`${settingText(first.path)} ${first.fault}.`);
  return policy;
}

/** The former names in a policy document, each as a sentence that names the present one. Throws `PolicyError`. */
export const formerNames = (written: string): readonly string[] => read(written).former.map(formerText);

/** Like `guard.people is now guard.customTaints`. */
function formerText({ of, path, before, now }: FormerName): string {
  if (of === 'value') return `${path.join('.')}: ${before} is now ${path.join('.')}: ${now}`;
  return `${[...path, before].join('.')} is now ${[...path, now].join('.')}`;
}

/** A policy, and what was loaded of its document: a mapping without names, like that of labels, loses `__proto__` as it is read. */
function read(written: string): {
  readonly policy: Policy;
  readonly loaded: unknown;
  readonly former: readonly FormerName[];
} {
  if (written.length > MAX_DOCUMENT_CHARACTERS) {
    throw new PolicyError(`The policy has more than ${MAX_DOCUMENT_CHARACTERS} characters: shorten it.`);
  }
  const former: FormerName[] = [];
  const loaded = withPresentNames(policyDocument, loadYaml(written), (each) => former.push(each));
  const twice = former.find(({ isSaidTwice }) => isSaidTwice);
  if (twice)
    throw new PolicyError(
      `${settingText(twice.path)} has both ${twice.before} and ${twice.now}, its present name: remove ${twice.before}.`,
    );
  const found = readAs(policyDocument, loaded);
  if (found.success) return { policy: found.data, loaded, former };
  throw new PolicyError(sentence(found.error.issues[0]));
}

function loadYaml(written: string): unknown {
  try {
    return load(written, { maxAliases: MAX_ALIASES });
  } catch (error) {
    // Equivalent mutant (ConditionalExpression): Reading YAML throws nothing else; should it ever, that is no
    // fault of who wrote the policy.
    if (!(error instanceof YAMLException)) throw error;
    const where = error.mark ? `line ${error.mark.line + 1}: ` : '';
    throw new PolicyError(`The policy is not valid YAML (${where}${error.reason}).`);
  }
}

function sentence(issue: z.core.$ZodIssue | undefined, above: readonly PropertyKey[] = []): string {
  // Equivalent mutants (ArrayDeclaration, OptionalChaining): What Zod refuses has an issue: the check is for
  // the type checker.
  const path = [...above, ...(issue?.path ?? [])];
  // Equivalent mutant (OptionalChaining): What Zod refuses has an issue: the check is for the type checker.
  if (issue?.code === 'invalid_union') {
    // Of something that is a mapping, what is wrong in it says more than what else it might be.
    const inner = issue.errors
      .flat()
      // Equivalent mutants (ConditionalExpression, StringLiteral): Where a setting is unknown and nothing
      // else is wrong, Zod tells that alone, and not that the union is invalid.
      .find(({ code, path: at }) => at.length > 0 || code === 'unrecognized_keys');
    if (inner) return sentence(inner, path);
  }
  // Equivalent mutant (OptionalChaining): What Zod refuses has an issue: the check is for the type checker.
  const unknown =
    issue?.code === 'unrecognized_keys'
      ? `has no setting ${escapeForDisplay(issue.keys[0] ?? '', 100)}: `
      : '';
  return `${settingText(path)} ${unknown}${issue?.message}.`;
}

/** Names a setting, like `policy.exclude[0].taints`. */
function settingText(path: readonly PropertyKey[]): string {
  const name = path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : `${text}.${String(part)}`),
    'policy',
  );
  return escapeForDisplay(name, 300);
}

/** A policy as a document that says every setting, as plain values. */
export const documentOf = (policy: Policy): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(z.encode(policyDocument, policy)).filter(([, value]) => value !== undefined),
  );

/**
 * A policy document with another mode, as its owner wrote it otherwise. Where that cannot be done in its text, one that says
 * every setting.
 */
export function withMode(written: string, mode: Policy['mode'], until?: EpochMs): string {
  const { pausedUntil: _, ...policy } = parsePolicyDocument(written);
  const wanted: Policy = { ...policy, mode, ...(until === undefined ? {} : { pausedUntil: until }) };
  const also = until === undefined ? '' : `\npausedUntil: ${momentText(until)}`;
  const edited = written
    .replace(/^pausedUntil:.*\n?/m, '')
    .replace(/^mode:[ \t]*\S+(.*)/m, (_, rest: string) => `mode: ${mode}${rest}${also}`);
  return isPolicy(edited, wanted) ? edited : policyText(wanted);
}

function isPolicy(written: string, wanted: Policy): boolean {
  try {
    return isDeepStrictEqual(parsePolicyDocument(written), wanted);
    // Equivalent mutant (BlockStatement): Reading a policy throws nothing but `PolicyError`, and `undefined`
    // is no more a policy than `false`.
  } catch (error) {
    // Equivalent mutant (ConditionalExpression): Reading a policy throws nothing but `PolicyError`; should it
    // ever, that is a mistake of ours.
    if (error instanceof PolicyError) return false;
    throw error;
  }
}

/** A policy as the text of a document that says every setting. */
export const policyText = (policy: Policy): string => dump(documentOf(policy));
