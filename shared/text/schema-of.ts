import type * as z from 'zod';

/** `T` in which no key is optional, at any depth. */
type Whole<T> = T extends bigint | boolean | number | string | undefined
  ? T
  : { readonly [Key in keyof T]-?: Whole<T[Key]> };
type Same<One, Other> = [One, Other] extends [Other, One] ? true : false;

/** Types a schema as `T`. It needs every key and value of `T`, at any depth, or a read would drop or reject them. */
export const schemaOf =
  <T>() =>
  <Schema extends z.ZodType<T>>(
    schema: Schema & (Same<Whole<z.output<Schema>>, Whole<T>> extends true ? unknown : Whole<T>),
  ): z.ZodType<T> =>
    schema;

/**
 * The keys of `T` and others, with any values. A shape or an encoded form that lacks a key of `T`, also an optional one,
 * does not satisfy it.
 */
export type KeysOf<T> = { readonly [Key in keyof T]-?: unknown } & Readonly<Record<string, unknown>>;
