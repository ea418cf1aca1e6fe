import { createInterface } from 'node:readline/promises';

interface Streams {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream;
}

/** Returns a prompt on standard error, because standard output may be piped. `undefined`: nobody can answer. */
export const terminalConfirm = ({ stdin, stderr }: Streams) =>
  stdin.isTTY
    ? (question: string): Promise<boolean> => confirmBy({ input: stdin, output: stderr }, question)
    : undefined;

/** Only `y` or `yes`, in any case, means yes. An empty line means no, and so does an input that ends without a line. */
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
