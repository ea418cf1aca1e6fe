import * as z from 'zod';

/**
 * Parses a foreign value like the schema's `safeParse`, which itself throws for some values. To check whether a text or
 * list is too short, it compares the `length` of any value that has one, and an object may have any.
 */
export function readAs<T>(schema: z.ZodType<T>, value: unknown): z.ZodSafeParseResult<T> {
  try {
    return schema.safeParse(value);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const message = 'has a part of a form that nothing has';
    return {
      success: false,
      error: new z.ZodError([{ code: 'custom', path: [], message, input: value }]) as z.ZodError<T>,
    };
  }
}
