import * as z from 'zod';
import { dnsLabelFaults, labelKeyFaults, labelValueFaults } from '#shared/taints/validation.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { moment } from '#shared/time/written.ts';

/* The forms that settings of a policy have: what a document may say, and what is read of it. */

/** What is read of `T`: nobody changes it, and what may be undefined is left out instead. */
type Read<T> = T extends readonly (infer Item)[]
  ? readonly Read<Item>[]
  : T extends object
    ? string extends keyof T
      ? Readonly<T>
      : { readonly [Name in keyof T as undefined extends T[Name] ? never : Name]: Read<T[Name]> } & {
          readonly [Name in keyof T as undefined extends T[Name] ? Name : never]?: Read<
            Exclude<T[Name], undefined>
          >;
        }
    : T;

/** What a mapping of settings is read as, and stored. */
type ReadSettings<Written, Stored> = Read<{
  [Name in keyof Written as Name extends keyof Stored ? Stored[Name] & string : Name]: Written[Name];
}>;

type Plain<Value> = z.ZodType<Value, Value>;

/** The schema of what is read by a schema: what a policy holds, and what is stored of it. */
export const readBy = <Schema extends z.core.$ZodType>(schema: Schema): Plain<z.output<Schema>> =>
  readByAny(schema) as Plain<z.output<Schema>>;

function readByAny(schema: z.core.$ZodType): z.ZodType {
  if (schema instanceof z.ZodCodec) return schema.def.out as z.ZodType;
  if (schema instanceof z.ZodPrefault) return readByAny(schema.def.innerType);
  if (schema instanceof z.ZodExactOptional) return readByAny(schema.def.innerType).exactOptional();
  if (schema instanceof z.ZodArray) return z.array(readByAny(schema.def.element));
  return schema as z.ZodType;
}

/**
 * Names and values that documents used before, by the mapping of settings or the choice that they belong to: each with its present
 * name. A document may still use them.
 */
export const formerly = z.registry<{ readonly names: ReadonlyMap<string, string> }>();

/**
 * A mapping of these settings and no others. `stored`: the names that some are read and stored by, which name the unit of a duration, or
 * are those from before a setting was renamed, so that releases from before that read what is stored.
 */
export function settings<
  Shape extends z.ZodRawShape,
  const Stored extends Partial<Record<keyof Shape & string, string>> = Record<never, never>,
>(shape: Shape, stored: Stored = {} as Stored) {
  const written = z.strictObject(shape, {
    // Which one is unknown is said by who reads the issue.
    error: ({ code }) =>
      code === 'unrecognized_keys'
        ? `its settings are ${Object.keys(shape).join(', ')}`
        : 'must be a mapping of settings',
  });
  type Written = z.output<typeof written>;
  type Read = ReadSettings<Written, Stored>;
  const names = Object.entries(stored as Readonly<Record<string, string>>);
  const toStored = new Map(names);
  const toWritten = new Map(names.map(([name, as]) => [as, name]));
  const former = names
    .map(([name, as]) => [as.replace(/Ms$/, ''), name] as const)
    .filter(([before, name]) => before !== name);
  if (former.length > 0) written.register(formerly, { names: new Map(former) });
  const shapeRead = Object.entries(shape).map(([name, schema]) => [name, readBy(schema)]);
  const read = z.strictObject(renamed(Object.fromEntries(shapeRead), toStored) as z.ZodRawShape);
  return z.codec(written, read as unknown as Plain<Read>, {
    decode: (mapping) => renamed(mapping, toStored) as Read,
    encode: (mapping) => renamed(mapping as object, toWritten) as Written,
  });
}

/** With other names, and without what is undefined. */
const renamed = (mapping: object, names: ReadonlyMap<string, string>): unknown =>
  Object.fromEntries(
    Object.entries(mapping)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [names.get(name) ?? name, value]),
  );

export const LIMIT = 'must be off, or a mapping of settings';
export const OFF = z.literal('off');

/** A limit that may be `off`: a policy has none then. */
export const orOff = <Limit extends z.ZodType>(limit: Limit) =>
  z.codec(z.union([OFF, limit], LIMIT).prefault({} as never), readBy(limit).optional(), {
    decode: (written) => (written === 'off' ? undefined : (written as z.output<Limit>)),
    encode: (read) => (read === undefined ? 'off' : read) as never,
  });

/** What a document leaves out where a policy has none. */
export const orNone = <Many extends z.ZodType<object>>(many: Many, none: z.output<Many>) =>
  z.codec(many.optional(), readBy(many), {
    decode: (written) => written ?? none,
    encode: (read) => (Object.keys(read).length === 0 ? undefined : read) as never,
  });

export const listOf = <Item extends z.ZodType>(item: Item, what: string) =>
  z.array(item, `must be a list of ${what}`).min(1, `must be a list of ${what}, or left out`);

// Equivalent mutant (StringLiteral): Where a check has no sentence of its own, Zod takes that of its type,
// which is the same.
export const text = (what: string) => z.string(`must be ${what}`).min(1, `must be ${what}`);

/**
 * Why a policy that can be read is not to be applied: the ends of sentences that begin with the setting. A name that nothing in Kubernetes can have
 * selects nothing, and a selector without conditions everything, so its owner means something else. What was stored before
 * goes on to mean what it meant.
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

/** A name, or a pattern in which each `*` stands for any characters. */
export const namespace = text('the name of a namespace').register(whenApplied, {
  faults: (name: string) =>
    /^\*+$/.test(name)
      ? ['must not match all namespaces: name some, or write a pattern like kube-*']
      : dnsLabelFaults(name.replaceAll('*', 'x')),
});

export const taintKeys = listOf(
  text('the key of a taint').register(whenApplied, { faults: taintKeyFaults }),
  'keys of taints',
);

/** Of a mapping by keys of taints. */
export const byTaintKey = z.string().register(whenApplied, { faults: taintKeyFaults });

export const labelKey = text('the key of a label').register(whenApplied, { faults: labelFaults });

export const labelValue = z
  .string('must be text: put it in quotes')
  .register(whenApplied, { faults: labelValueFaults });

export const labelValues = z
  .record(
    z.string().register(whenApplied, { faults: labelFaults }),
    labelValue,
    'must be a mapping of labels',
  )
  .register(whenApplied, {
    faults: (labels: object) =>
      Object.keys(labels).length > 0
        ? []
        : ['must name a label, or be left out: without one it selects everything'],
  });

/** A moment to come; `fix`: what to do about one that is over. */
export const end = (fix: string) =>
  moment.exactOptional().register(whenApplied, {
    faults: (written: string, now) =>
      now !== undefined && z.decode(moment, written) <= now ? [`is over: ${fix}`] : [],
  });

const PERCENT = 'must be a number from 0 to 100, like 20 or 20%';
export const percent = z.codec(
  z.union(
    [z.number().min(0, PERCENT).max(100, PERCENT), z.string().regex(/^(\d{1,2}(\.\d+)?|100)%$/, PERCENT)],
    PERCENT,
  ),
  z.number(PERCENT),
  {
    // Equivalent mutant (ConditionalExpression): What a number reads as is that number.
    decode: (written) => (typeof written === 'string' ? Number.parseFloat(written) : written),
    encode: (read) => read,
  },
);

const COUNT = 'must be a whole number from 0 on';
export const count = z.int(COUNT).min(0, COUNT);

const PER_SECOND = 'must be a number of pods per second from 0.001 to 1000000';
export const perSecond = z.number(PER_SECOND).min(0.001, PER_SECOND).max(1_000_000, PER_SECOND);

export const trueOrFalse = z.boolean('must be true or false');
