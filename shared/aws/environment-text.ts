import type * as z from 'zod';

/** A variable of an environment: its purpose, and its default. No default: the variable is required or optional. */
export interface EnvironmentVariable {
  readonly name: string;
  readonly purpose: string;
  readonly byDefault?: string;
}

/** Returns the variables of an environment, in the order of `purposes`. */
export function environmentVariables<Shape extends z.ZodRawShape>(
  { shape }: z.ZodObject<Shape>,
  purposes: Readonly<Record<keyof Shape & string, string>>,
): readonly EnvironmentVariable[] {
  const names = Object.keys(purposes) as (keyof Shape & string)[];
  return [
    ...names.map((name) => {
      const { data } = (shape[name] as z.ZodType | undefined)?.safeParse(undefined) ?? {};
      const variable = { name, purpose: purposes[name] };
      return data === undefined ? variable : { ...variable, byDefault: String(data) };
    }),
    { name: 'AWS_REGION', purpose: 'where the stack is; credentials come as to every AWS SDK' },
  ];
}

/** Returns the variables for people, one on each line. */
export function environmentText(variables: readonly EnvironmentVariable[]): string {
  const width = Math.max(...variables.map(({ name }) => name.length));
  return variables
    .map(
      ({ name, purpose, byDefault }) =>
        `  ${name.padEnd(width)}  ${purpose}${byDefault === undefined ? '' : ` (default: ${byDefault})`}`,
    )
    .join('\n');
}
