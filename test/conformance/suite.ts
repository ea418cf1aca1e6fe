import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { errorMessage } from '#shared/text/error-message.ts';

/** The expectation of a case, and the code's result. */
export interface Mismatch {
  readonly expected: NonNullable<unknown>;
  readonly got: NonNullable<unknown>;
}

export interface ConformanceCase {
  readonly id: string;
  /** Resolves with `undefined` if the code meets the expectation. Never rejects: an error of the code is a result. */
  run(): Promise<Mismatch | undefined>;
}

export const caseFile = z.object({
  schema: z.string(),
  cases: z.array(z.unknown()),
  /** Only in `schedule/1`. */
  normalize: z.array(z.unknown()).exactOptional(),
});
export type CaseFile = z.output<typeof caseFile>;

/** A published schema, with the functions that read and run its cases. */
export interface Suite {
  readonly schema: string;
  /** Returns every case of a file, in order; a malformed case is included and fails when run. */
  cases(file: CaseFile): readonly ConformanceCase[];
}

/** Reads raw cases. `list` is the file's field that contains them; it names a case without an ID. */
export function readCases<C extends { readonly id: string }>(
  list: string,
  raw: readonly unknown[],
  schema: z.ZodType<C>,
  run: (parsed: C) => Mismatch | undefined | Promise<Mismatch | undefined>,
): readonly ConformanceCase[] {
  return raw.map((element, index) => {
    const found = schema.safeParse(element);
    if (!found.success) {
      const id = identified.safeParse(element).data?.id ?? `${list}[${index}]`;
      return { id, run: async () => ({ expected: 'a case as published', got: describeIssue(found.error) }) };
    }
    return { id: found.data.id, run: () => settle(found.data, run) };
  });
}

/** Returns `undefined` when both are deeply equal. */
export function compare<T extends NonNullable<unknown>>(expected: T, got: T): Mismatch | undefined {
  return isDeepStrictEqual(expected, got) ? undefined : { expected, got };
}

/** Returns a schema's first issue as one line: `events.3.uid: …`. */
export function describeIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  return `${issue?.path.join('.') || 'the whole'}: ${issue?.message}`;
}

const identified = z.object({ id: z.string() });

async function settle<C>(
  parsed: C,
  run: (parsed: C) => Mismatch | undefined | Promise<Mismatch | undefined>,
): Promise<Mismatch | undefined> {
  try {
    return await run(parsed);
  } catch (error) {
    return {
      expected: 'an answer',
      got: `thrown: ${errorMessage(error)}`,
    };
  }
}
