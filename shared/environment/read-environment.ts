import type * as z from 'zod';

/** A process was started with an environment it cannot work with; the message names the variable and the fix. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}

/** What a process reads from its environment, checked once at its start. Throws `EnvironmentError`. */
export function readEnvironment<T>(
  schema: z.ZodType<T>,
  variables: Readonly<Record<string, string | undefined>>,
): T {
  const found = schema.safeParse(variables);
  if (found.success) return found.data;
  const [issue] = found.error.issues;
  const name = String(issue?.path[0]);
  const fault = variables[name] === undefined ? 'is not set' : `cannot be used (${issue?.message})`;
  throw new EnvironmentError(
    `The environment variable ${name} ${fault}: the stack sets it for everything it deploys, and prints it for a relay of your own.`,
  );
}
