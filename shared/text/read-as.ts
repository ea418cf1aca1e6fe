import * as z from 'zod';
import { escapeForDisplay } from './escape-for-display.ts';

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

/** Maximum characters of a fault's field and of its description. */
const MAX_LENGTH = 200;

/** The first fault that a schema found, for a sentence. */
export interface Fault {
  /** Place of the fault: names and indexes with dots between; empty: the whole value. */
  readonly field: string;
  /** The fault, without a full stop. */
  readonly fault: string;
}

/** Returns the first fault that a schema found. */
export const firstFault = (error: z.ZodError): Fault => faultsOf(error)[0] ?? { field: '', fault: '' };

/** Returns all faults that a schema found. Their texts are short and safe to display, whatever the value is. */
export const faultsOf = ({ issues }: z.ZodError): readonly Fault[] =>
  issues.map((issue) => ({
    field: escapeForDisplay(issue.path.join('.'), MAX_LENGTH),
    fault: escapeForDisplay(faultOf(issue), MAX_LENGTH),
  }));

function faultOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys')
    return `has no field ${escapeForDisplay(issue.keys[0] ?? '', 100)}: leave it out`;
  // An issue doesn't contain the value itself.
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) return 'is missing';
  if (issue.code === 'invalid_type' && issue.message.endsWith('received NaN')) return 'is no number';
  return issue.message;
}
