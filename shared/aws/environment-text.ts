import type * as z from 'zod';

/** A variable of an environment: what it is for, and its value where it is not set; absent: it has to be set, or may be left out. */
export interface EnvironmentVariable {
  readonly name: string;
  readonly purpose: string;
  readonly byDefault?: string;
}

/** The variables of an environment, in the order of their purposes. */
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

/** The variables for people, a line each. */
export function environmentText(variables: readonly EnvironmentVariable[]): string {
  const width = Math.max(...variables.map(({ name }) => name.length));
  return variables
    .map(
      ({ name, purpose, byDefault }) =>
        `  ${name.padEnd(width)}  ${purpose}${byDefault === undefined ? '' : ` (default: ${byDefault})`}`,
    )
    .join('\n');
}
