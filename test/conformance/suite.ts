import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { errorMessage } from '#shared/text/error-message.ts';

/** What a case expects and what the code says instead. */
export interface Mismatch {
  readonly expected: NonNullable<unknown>;
  readonly got: NonNullable<unknown>;
}

export interface ConformanceCase {
  readonly id: string;
  /** `undefined`: the code does what the case expects. Never rejects: what the code throws is what it says. */
  run(): Promise<Mismatch | undefined>;
}

export const caseFile = z.object({
  schema: z.string(),
  cases: z.array(z.unknown()),
  /** Of `schedule/1` only. */
  normalize: z.array(z.unknown()).exactOptional(),
});
export type CaseFile = z.output<typeof caseFile>;

/** How the cases of one published schema are read and run. */
export interface Suite {
  readonly schema: string;
  /** Every case of a file, in order; one that is malformed is there too and fails when run. */
  cases(file: CaseFile): readonly ConformanceCase[];
}

/** Reads raw cases. `list` is the file's field they stand in; it names a case that has no id. */
export function readCases<C extends { readonly id: string }>(
  list: string,
  raw: readonly unknown[],
  schema: z.ZodType<C>,
  run: (parsed: C) => Mismatch | undefined | Promise<Mismatch | undefined>,
): readonly ConformanceCase[] {
  return raw.map((each, index) => {
    const found = schema.safeParse(each);
    if (!found.success) {
      const id = identified.safeParse(each).data?.id ?? `${list}[${index}]`;
      return { id, run: async () => ({ expected: 'a case as published', got: describeIssue(found.error) }) };
    }
    return { id: found.data.id, run: () => settle(found.data, run) };
  });
}

/** `undefined` when both are the same, all the way down. */
export function compare<T extends NonNullable<unknown>>(expected: T, got: T): Mismatch | undefined {
  return isDeepStrictEqual(expected, got) ? undefined : { expected, got };
}

/** A schema's first complaint as one line: `events.3.uid: …`. */
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
