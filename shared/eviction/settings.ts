import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import {
  dnsLabelFaults,
  dnsSubdomainFaults,
  labelKeyFaults,
  labelValueFaults,
} from '#shared/taints/validation.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { moment } from '#shared/time/written.ts';
import { INTERMEDIATE_OWNERS, MAX_ANNOTATION_CHARACTERS } from './selectors.ts';

/*
 * Schemas of policy settings. Codecs convert between the form that documents write and the form that decisions use.
 */

/** `T`, read-only, and with properties that may be undefined made optional. */
export type Settings<T> = T extends readonly (infer Item)[]
  ? readonly Settings<Item>[]
  : T extends object
    ? string extends keyof T
      ? Readonly<T>
      : { readonly [Name in keyof T as undefined extends T[Name] ? never : Name]: Settings<T[Name]> } & {
          readonly [Name in keyof T as undefined extends T[Name] ? Name : never]?: Settings<
            Exclude<T[Name], undefined>
          >;
        }
    : T;

/** Returns the schema of a mapping with exactly these settings. */
export const settings = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z
    .strictObject(shape, {
      // The function that reads the issue adds the name of the unknown setting.
      error: ({ code }) =>
        code === 'unrecognized_keys'
          ? `its settings are ${Object.keys(shape).join(', ')}`
          : 'must be a mapping of settings',
    })
    .overwrite((mapping) => defined(mapping) as typeof mapping);

type InMs<Mapping, Name extends keyof Mapping & string> = Omit<Mapping, Name> & {
  readonly [_ in `${Name}Ms`]: number;
};

/** Returns a codec of settings that reads the duration `name` as milliseconds, `nameMs`. */
export const inMs = <Mapping extends z.ZodType<object>, const Name extends keyof z.output<Mapping> & string>(
  mapping: Mapping,
  name: Name,
) =>
  z.codec(mapping, z.custom<InMs<z.output<Mapping>, Name>>(), {
    decode: (written) => renamed(written, name, `${name}Ms`) as InMs<z.output<Mapping>, Name>,
    encode: (read) => renamed(read, `${name}Ms`, name) as never,
  });

/** Zod also encodes settings that are absent. */
const renamed = (mapping: object | undefined, name: string, as: string): object | undefined =>
  mapping &&
  Object.fromEntries(Object.entries(mapping).map(([each, value]) => [each === name ? as : each, value]));

export const LIMIT = 'must be off, or a mapping of settings';
export const OFF = z.literal('off');

/** Returns the codec of a limit that may be `off`. With `off`, the policy has no limit. */
export const orOff = <Limit extends z.ZodType>(limit: Limit) =>
  z.codec(z.union([OFF, limit], LIMIT).prefault({} as never), z.custom<z.output<Limit>>().optional(), {
    decode: (written) => (written === 'off' ? undefined : (written as z.output<Limit>)),
    encode: (read) => (read === undefined ? 'off' : read) as never,
  });

/** Returns the codec of a list or mapping that documents omit when it is empty. */
export const orNone = <Many extends z.ZodType<object>>(many: Many, none: z.output<Many>) =>
  z.codec(many.optional(), z.custom<z.output<Many>>(), {
    decode: (written) => written ?? none,
    encode: (read) => (Object.keys(read).length === 0 ? undefined : read) as never,
  });

export const listOf = <Item extends z.ZodType>(item: Item, what: string) =>
  z.array(item, `must be a list of ${what}`).min(1, `must be a list of ${what}, or left out`);

export const text = (what: string) => z.string(`must be ${what}`).min(1, `must be ${what}`);

/**
 * Reasons to reject a valid document when it is applied, as ends of sentences about the setting. A name that no object
 * can have selects nothing; a selector without conditions, everything. Stored policies keep their meaning.
 */
export const whenApplied = z.registry<{
  readonly faults: (written: never, now: EpochMs | undefined) => readonly string[];
}>();

/** Kubernetes matches taints, tolerations and labels by whole names, and so does a policy. */
const patternFaults = (name: string, what: string): readonly string[] | undefined =>
  name.includes('*') ? [`must be ${what}, written out: a * matches nothing, so list each one`] : undefined;

function taintKeyFaults(key: string): readonly string[] {
  const [rest] = /[=:].*$/s.exec(key) ?? [];
  const whole = rest === undefined ? undefined : [`must be the key of a taint alone: leave out ${rest}`];
  return patternFaults(key, 'the key of a taint') ?? whole ?? labelKeyFaults(key);
}

const labelFaults = (key: string): readonly string[] =>
  patternFaults(key, 'the key of a label') ?? labelKeyFaults(key);

/** A name, or a pattern in which each `*` matches any characters. */
export const namespace = text('the name of a namespace').register(whenApplied, {
  faults: (name: string) =>
    /^\*+$/.test(name)
      ? ['must not match all namespaces: name some, or write a pattern like kube-*']
      : dnsLabelFaults(name.replaceAll('*', 'x')),
});

export const taintKey = text('the key of a taint').register(whenApplied, { faults: taintKeyFaults });

export const taintKeys = listOf(taintKey, 'keys of taints');

export const byTaintKey = z.string().register(whenApplied, { faults: taintKeyFaults });

export const labelKey = text('the key of a label').register(whenApplied, { faults: labelFaults });

export const labelValue = z
  .string('must be text: put it in quotes')
  .register(whenApplied, { faults: labelValueFaults });

const valuesByKey = (
  what: string,
  keyFaults: (key: string) => readonly string[],
  value: z.ZodType<string, string>,
) =>
  z
    .record(z.string().register(whenApplied, { faults: keyFaults }), value, `must be a mapping of ${what}s`)
    .register(whenApplied, {
      faults: (values: object) =>
        Object.keys(values).length > 0
          ? []
          : [`must have at least one ${what}, or be left out: without one it selects everything`],
    });

export const labelValues = valuesByKey('label', labelFaults, labelValue);

export const annotationValues = valuesByKey(
  'annotation',
  // Unlike in the keys of labels, Kubernetes allows upper case in a prefix.
  (key) => patternFaults(key, 'the key of an annotation') ?? labelKeyFaults(key.toLowerCase()),
  z
    .string('must be text: put it in quotes')
    .max(
      MAX_ANNOTATION_CHARACTERS,
      `must have at most ${MAX_ANNOTATION_CHARACTERS} characters: select by another annotation`,
    ),
);

const OWNER_KINDS: readonly string[] = [
  ...['DaemonSet', 'Job', 'Node', 'ReplicaSet', 'ReplicationController', 'StatefulSet'],
  ...Object.keys(INTERMEDIATE_OWNERS),
];

/** Accepts kinds of custom controllers, but neither a known kind in another form, nor one that owns no pod itself. */
function ownerKindFaults(kind: string): readonly string[] {
  if (!/^[a-z][-a-z0-9]*$/i.test(kind)) return ['must be a kind alone, like DaemonSet'];
  const known = OWNER_KINDS.find((each) => new RegExp(`^${each}s?$`, 'i').test(kind));
  const owner = known && INTERMEDIATE_OWNERS[known];
  if (owner) return [`selects no pod: each pod of a ${known} is owned by a ${owner}, so write ${owner}`];
  return known === undefined || known === kind ? [] : [`must be ${known}, as Kubernetes writes it`];
}

/** The kind of the controller that a pod's owner references name. */
export const ownerKind = text('a kind').register(whenApplied, { faults: ownerKindFaults });

export const priorityClassName = text('the name of a priority class').register(whenApplied, {
  faults: (name: string) => patternFaults(name, 'the name of a priority class') ?? dnsSubdomainFaults(name),
});

/** A time in the future, at which an entry of a list ends. */
export const end = moment.exactOptional().register(whenApplied, {
  faults: (written: string, now) =>
    now !== undefined && z.decode(moment, written) <= now
      ? ['is over: remove the entry, or write a time to come']
      : [],
});

const PERCENT = 'must be a number from 0 to 100, like 20 or 20%';
export const percent = z.codec(
  z.union(
    [z.number().min(0, PERCENT).max(100, PERCENT), z.string().regex(/^(\d{1,2}(\.\d+)?|100)%$/, PERCENT)],
    PERCENT,
  ),
  z.number(PERCENT),
  {
    decode: (written) => (typeof written === 'string' ? Number.parseFloat(written) : written),
    encode: (read) => read,
  },
);
percent.register(whenApplied, {
  faults(written: number | string) {
    if (typeof written === 'string' || written <= 0 || written >= 1) return [];
    const meant = Number((written * 100).toPrecision(12));
    return [`must be a percentage from 1 to 100, or 0: for ${meant} %, write ${meant}`];
  },
});

const COUNT = 'must be a whole number from 0 on';
export const count = z.int(COUNT).min(0, COUNT);

const PER_SECOND = 'must be a number of pods per second from 0.001 to 1000000';
export const perSecond = z.number(PER_SECOND).min(0.001, PER_SECOND).max(1_000_000, PER_SECOND);

export const trueOrFalse = z.boolean('must be true or false');
