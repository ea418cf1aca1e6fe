import { isDeepStrictEqual } from 'node:util';
import { dump, load, YAMLException } from 'js-yaml';
import * as z from 'zod';
import type { EpochMs } from '#shared/eviction/identity.ts';
import {
  DEFAULT_POLICY,
  type GuardPolicy,
  type Policy,
  type Selection,
  type Threshold,
} from '#shared/eviction/policy.ts';
import { readAs } from '#shared/read-as.ts';
import { shownText } from '#shared/shown-text.ts';
import { DURATION_FORM, durationMs, durationText } from '#shared/time/duration.ts';
import { momentFaults, nameFaults, type WrittenPolicy } from './policy-faults.ts';

/** A policy document that cannot be read; the message is one sentence that names the setting and the fix. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';

  /** What it quotes of the document is made to fit on a line. */
  constructor(message: string) {
    super(shownText(message, LONGEST_MESSAGE));
  }
}

const LONGEST_MESSAGE = 1_000;

/** Characters of a document: it is stored with its cluster, and read with each decision. */
export const MAX_DOCUMENT_CHARACTERS = 32_000;

/** Aliases of aliases make a short text say more than anybody has the time to read. */
const MAX_ALIASES = 20;

const SECOND_MS = 1000;

/** A mapping of these settings and no others. */
const settings = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return 'must be a mapping of settings';
      const [unknown] = (issue as unknown as { readonly keys: readonly string[] }).keys;
      // Equivalent mutant (StringLiteral): An issue of unknown keys names one at least: the check is for the
      // type checker.
      return `has no setting ${shownText(unknown ?? '', 100)}: there are ${Object.keys(shape).join(', ')}`;
    },
  });

const listOf = <Item extends z.ZodType>(item: Item, what: string) =>
  z.array(item, `must be a list of ${what}`).min(1, `must be a list of ${what}, or left out`);

// Equivalent mutant (StringLiteral): Where a check has no sentence of its own, Zod takes that of its type,
// which is the same.
const text = (what: string) => z.string(`must be ${what}`).min(1, `must be ${what}`);

const DURATION = 'must be a duration like 90s, 15m, 4h or 4d, and 10000d at most';
/** Beyond, it is for ever; and what is stored of it stays exact. */
const LONGEST_MS = 10_000 * 24 * 3600 * SECOND_MS;
const duration = z
  .string(DURATION)
  .regex(DURATION_FORM, DURATION)
  .transform((written) => durationMs(written) ?? 0)
  .refine((ms) => ms > 0 && ms <= LONGEST_MS, DURATION);

const MOMENT = 'must be a time like 2026-12-01T08:00:00Z';
const moment = z.iso
  .datetime({ offset: true, error: MOMENT })
  .transform((written) => Date.parse(written))
  .refine((at) => at >= 0, 'must be a time from 1970 on');

const PERCENT = 'must be a number from 0 to 100, like 20 or 20%';
const percent = z
  .union(
    [z.number().min(0, PERCENT).max(100, PERCENT), z.string().regex(/^(\d{1,2}(\.\d+)?|100)%$/, PERCENT)],
    PERCENT,
  )
  // Equivalent mutant (ConditionalExpression): What a number reads as is that number.
  .transform((written) => (typeof written === 'string' ? Number.parseFloat(written) : written));

const COUNT = 'must be a whole number from 0 on';
const count = z.int(COUNT).min(0, COUNT);

const PER_SECOND = 'must be a number of pods per second from 0.001 to 1000000';
const perSecond = z.number(PER_SECOND).min(0.001, PER_SECOND).max(1_000_000, PER_SECOND);

const affected = { percent: percent.exactOptional(), nodes: count.exactOptional() };
const affectedByPeople = settings({ ...affected, within: duration.exactOptional() });
const OFF = z.literal('off');
const LIMIT = 'must be off, or a mapping of settings';

const guard = settings({
  shadow: z
    .boolean('must be true or false')
    .exactOptional()
    .meta({ description: 'It only tells that it would have held evictions.' }),
  cluster: z.union([OFF, settings(affected)], LIMIT).exactOptional(),
  zone: z.union([OFF, settings(affected)], LIMIT).exactOptional(),
  people: z.union([OFF, affectedByPeople], LIMIT).exactOptional(),
});

const labelValues = z.record(
  z.string(),
  z.string('must be text: put it in quotes'),
  'must be a mapping of labels',
);

const expression = settings({
  key: text('the key of a label'),
  operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist'], 'must be In, NotIn, Exists or DoesNotExist'),
  values: listOf(z.string('must be text: put it in quotes'), 'values').exactOptional(),
}).refine(({ operator, values }) => (operator === 'In' || operator === 'NotIn') === (values !== undefined), {
  path: ['values'],
  error: 'must be a list with the operators In and NotIn, and left out with Exists and DoesNotExist',
});

const selection = settings({
  namespaces: listOf(text('the name of a namespace'), 'namespaces').exactOptional(),
  labels: settings({
    matchLabels: labelValues.exactOptional(),
    matchExpressions: listOf(expression, 'expressions').exactOptional(),
  })
    .refine(({ matchLabels, matchExpressions }) => matchLabels ?? matchExpressions, {
      error: 'must have matchLabels or matchExpressions',
    })
    .exactOptional(),
  taints: listOf(text('the key of a taint'), 'keys of taints').exactOptional(),
  until: moment.exactOptional(),
}).refine(({ namespaces, labels, taints }) => namespaces ?? labels ?? taints, {
  error: 'must name namespaces, labels or taints, or it would be everything',
});

const SECONDS = 'must be a whole number of seconds from 0 on';

const documentSchema = settings({
  mode: z
    .enum(['observe', 'enforce', 'paused'], 'must be observe, enforce or paused')
    .meta({ description: 'observe: everything is decided and told, and nothing is marked or deleted.' }),
  pausedUntil: moment.exactOptional().meta({ description: 'With paused: from then on it is enforce.' }),
  guard: z
    .union([OFF, guard], LIMIT)
    .exactOptional()
    .meta({ description: 'When so many nodes are affected at a time, evictions are held.' }),
  rate: perSecond.exactOptional().meta({ description: 'Pods per second that go at most in the cluster.' }),
  drain: perSecond
    .exactOptional()
    .meta({ description: 'Pods per second that go when what was held is let go.' }),
  exclude: listOf(selection, 'what is left alone')
    .exactOptional()
    .meta({ description: 'What is left alone.' }),
  only: listOf(selection, 'what may be evicted')
    .exactOptional()
    .meta({ description: 'Nothing else is evicted.' }),
  method: z
    .enum(['delete', 'evict'], 'must be delete or evict')
    .exactOptional()
    .meta({ description: 'evict: by the Eviction API, which heeds disruption budgets.' }),
  evict: settings({
    deadline: duration.exactOptional(),
    afterDeadline: z.enum(['delete', 'never'], 'must be delete or never').exactOptional(),
  })
    .exactOptional()
    .meta({ description: 'With the method evict: for how long budgets are heeded, and what then.' }),
  tolerationSeconds: z
    .record(z.string(), z.int(SECONDS).min(0, SECONDS), 'must be a mapping of keys of taints to seconds')
    .exactOptional()
    .meta({ description: 'By key of a taint, in place of what pods say.' }),
  requireExpiredLease: z.boolean('must be true or false').exactOptional().meta({
    description: 'Pods stay on a node that is called unreachable for as long as it renews its Lease.',
  }),
  virtualKeys: listOf(text('the key of a taint'), 'keys of taints')
    .exactOptional()
    .meta({ description: 'NoSchedule taints of these keys count as NoExecute.' }),
  giveUpAfter: duration
    .exactOptional()
    .meta({ description: 'An eviction that fails for so long is given up.' }),
})
  .refine(({ mode, pausedUntil }) => pausedUntil === undefined || mode === 'paused', {
    path: ['pausedUntil'],
    error: 'needs mode: paused',
  })
  .refine(({ method, evict }) => evict === undefined || method === 'evict', {
    path: ['evict'],
    error: 'needs method: evict',
  });

type Document = z.output<typeof documentSchema>;

/** The same rules for editors: JSON Schema of a policy document. */
export const policyJsonSchema = (): object =>
  // Equivalent mutant (StringLiteral): Zod asks only whether it is to throw.
  z.toJSONSchema(documentSchema, { io: 'input', unrepresentable: 'any' });

/** With the method `evict`, where a document does not say otherwise. */
const EVICT_DEFAULTS = { deadlineMs: 15 * 60 * SECOND_MS, afterDeadline: 'delete' } as const;

/** Reads a policy document, YAML. What it leaves out is as in `DEFAULT_POLICY`. Throws `PolicyError`. */
export const parsePolicyDocument = (written: string): Policy => policyOf(read(written).document);

/**
 * As {@link parsePolicyDocument}, for a document that is to be applied. Throws `PolicyError`, too, for names that nothing in
 * Kubernetes can have and for selectors that are empty; with `now` also for what is over by then.
 */
export function parseAppliedPolicy(written: string, now?: EpochMs): Policy {
  const { document, loaded } = read(written);
  const [first] = [...nameFaults(loaded), ...(now === undefined ? [] : momentFaults(loaded, now))];
  if (first) throw new PolicyError(`${settingText(first.path)} ${first.fault}.`);
  return policyOf(document);
}

/** A document, and what was loaded of it: a mapping without names, like that of labels, loses `__proto__` as it is read. */
function read(written: string): { readonly document: Document; readonly loaded: WrittenPolicy } {
  if (written.length > MAX_DOCUMENT_CHARACTERS) {
    throw new PolicyError(`The policy has more than ${MAX_DOCUMENT_CHARACTERS} characters: shorten it.`);
  }
  const loaded = loadYaml(written);
  const found = readAs(documentSchema, loaded);
  if (found.success) return { document: found.data, loaded: loaded as WrittenPolicy };
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
    throw new PolicyError(`The policy is not YAML (${where}${error.reason}): correct it.`);
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
  return `${settingText(path)} ${issue?.message}.`;
}

/** Names a setting, like `policy.exclude[0].taints`. */
function settingText(path: readonly PropertyKey[]): string {
  const name = path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : `${text}.${String(part)}`),
    'policy',
  );
  return shownText(name, 300);
}

function policyOf(document: Document): Policy {
  const {
    mode,
    pausedUntil,
    guard: guarded,
    rate,
    method,
    evict,
    giveUpAfter,
    requireExpiredLease,
    ...rest
  } = document;
  return {
    ...DEFAULT_POLICY,
    ...rest,
    mode,
    ...(pausedUntil === undefined ? {} : { pausedUntil }),
    guard: guardOf(guarded ?? {}),
    ...(rate === undefined ? {} : { rate }),
    ...(method === 'evict'
      ? {
          method: {
            kind: method,
            deadlineMs: evict?.deadline ?? EVICT_DEFAULTS.deadlineMs,
            afterDeadline: evict?.afterDeadline ?? EVICT_DEFAULTS.afterDeadline,
          },
        }
      : {}),
    // Only what is said otherwise is stored: a release that does not know the setting would evict nothing.
    ...(requireExpiredLease === false ? { requireExpiredLease } : {}),
    ...(giveUpAfter === undefined ? {} : { giveUpAfterMs: giveUpAfter }),
  };
}

function guardOf(written: NonNullable<Document['guard']>): GuardPolicy {
  const normal = DEFAULT_POLICY.guard;
  if (written === 'off') return { shadow: normal.shadow };
  const { shadow, cluster, zone, people } = written;
  return {
    shadow: shadow ?? normal.shadow,
    ...(cluster === 'off' || !normal.cluster ? {} : { cluster: { ...normal.cluster, ...cluster } }),
    ...(zone === 'off' || !normal.zone ? {} : { zone: { ...normal.zone, ...zone } }),
    ...(people === 'off' || !normal.people ? {} : { people: peopleOf(normal.people, people) }),
  };
}

function peopleOf(
  normal: NonNullable<GuardPolicy['people']>,
  { within, ...limit }: z.output<typeof affectedByPeople> = {},
): NonNullable<GuardPolicy['people']> {
  return { ...normal, ...limit, ...(within === undefined ? {} : { withinMs: within }) };
}

/** A policy as a document that says every setting, as plain values. */
export function documentOf(policy: Policy): Readonly<Record<string, unknown>> {
  const { mode, pausedUntil, rate, drain, exclude, only, method } = policy;
  const { shadow, cluster, zone, people } = policy.guard;
  return {
    mode,
    ...(pausedUntil === undefined ? {} : { pausedUntil: momentText(pausedUntil) }),
    guard: {
      shadow,
      cluster: cluster ? affectedOf(cluster) : 'off',
      zone: zone ? affectedOf(zone) : 'off',
      people: people ? { ...affectedOf(people), within: durationText(people.withinMs) } : 'off',
    },
    ...(rate === undefined ? {} : { rate }),
    drain,
    ...(exclude.length === 0 ? {} : { exclude: exclude.map(selectionOf) }),
    ...(only.length === 0 ? {} : { only: only.map(selectionOf) }),
    method: method.kind,
    ...(method.kind === 'evict'
      ? { evict: { deadline: durationText(method.deadlineMs), afterDeadline: method.afterDeadline } }
      : {}),
    ...(Object.keys(policy.tolerationSeconds).length === 0
      ? {}
      : { tolerationSeconds: policy.tolerationSeconds }),
    ...(policy.requireExpiredLease === false ? { requireExpiredLease: false } : {}),
    ...(policy.virtualKeys.length === 0 ? {} : { virtualKeys: policy.virtualKeys }),
    giveUpAfter: durationText(policy.giveUpAfterMs),
  };
}

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

const affectedOf = ({ percent, nodes }: Threshold) => ({ percent, nodes });

const selectionOf = ({ until, ...selection }: Selection) => ({
  ...selection,
  ...(until === undefined ? {} : { until: momentText(until) }),
});

const momentText = (at: EpochMs): string => new Date(at).toISOString();
