import type * as z from 'zod';

/** The variables of an environment for people, a line each: what each is for, and what it is where it is not set. */
export function environmentText<Shape extends z.ZodRawShape>(
  { shape }: z.ZodObject<Shape>,
  purposes: Readonly<Record<keyof Shape & string, string>>,
): string {
  const names = Object.keys(purposes) as (keyof Shape & string)[];
  const lines = [
    ...names.map((name) => [name, `${purposes[name]}${defaultText(shape[name])}`] as const),
    ['AWS_REGION', 'where the stack is; credentials come as to every AWS SDK'] as const,
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  return lines.map(([name, what]) => `  ${name.padEnd(width)}  ${what}`).join('\n');
}

function defaultText(variable: z.core.$ZodType | undefined): string {
  const { success, data } = (variable as z.ZodType).safeParse(undefined);
  return success && data !== undefined ? ` (default: ${data})` : '';
}
