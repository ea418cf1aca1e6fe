import { createInterface } from 'node:readline/promises';

/**
 * Asks a person at a terminal, and waits for a line. Only `y` or `yes`, in any case, is a yes: an empty line is a no, as the prompt says,
 * and so is an input that ends without one.
 */
export async function confirmBy(
  { input, output }: Readonly<{ input: NodeJS.ReadableStream; output: NodeJS.WritableStream }>,
  question: string,
): Promise<boolean> {
  const terminal = createInterface({ input, output });
  const { promise: ended, resolve: end } = Promise.withResolvers<string>();
  terminal.once('close', () => end(''));
  try {
    return /^y(es)?$/i.test(await Promise.race([terminal.question(`${question} [y/N] `), ended]));
  } finally {
    terminal.close();
  }
}
