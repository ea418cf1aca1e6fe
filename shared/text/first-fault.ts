import type * as z from 'zod';
import { escapeForDisplay } from './escape-for-display.ts';

/** Characters of a field's place and of what is wrong with it. */
const MAX_LENGTH = 200;

/** What a schema found wrong first, for a sentence. */
export interface Fault {
  /** Where: names and places with dots between; empty: the whole. */
  readonly field: string;
  /** What, without a full stop. */
  readonly fault: string;
}

/** What a schema found wrong first. However large or odd it was that it read, both are short, and can only be read. */
export function firstFault({ issues: [issue] }: z.ZodError): Fault {
  const field = issue?.path.join('.') ?? '';
  return {
    field: escapeForDisplay(field, MAX_LENGTH),
    fault: escapeForDisplay(issue ? faultOf(issue) : '', MAX_LENGTH),
  };
}

function faultOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys')
    return `has no field ${escapeForDisplay(issue.keys[0] ?? '', 100)}: leave it out`;
  // The value itself is not told of by an issue.
  if (issue.code === 'invalid_type' && issue.message.endsWith('received undefined')) return 'is missing';
  if (issue.code === 'invalid_type' && issue.message.endsWith('received NaN')) return 'is no number';
  return issue.message;
}
