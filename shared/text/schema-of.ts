import type * as z from 'zod';

/** `T` in which no key is optional, at any depth. */
type Whole<T> = T extends bigint | boolean | number | string | undefined
  ? T
  : { [Key in keyof T]-?: Whole<T[Key]> };

/**
 * Types a schema as `T`. A schema that lacks a key of `T`, also an optional or a nested one, does not compile:
 * otherwise the first read would drop it, or reject it.
 */
export const schemaOf =
  <T>() =>
  <Schema extends z.ZodType<T>>(
    schema: Schema & ([Whole<z.output<Schema>>] extends [Whole<T>] ? unknown : Whole<T>),
  ): z.ZodType<T> =>
    schema;

/**
 * The keys of `T` and others, with any values. A shape or an encoded form that lacks a key of `T`, also an optional one,
 * does not satisfy it.
 */
export type KeysOf<T> = { readonly [Key in keyof T]-?: unknown } & Readonly<Record<string, unknown>>;
