import { text } from 'node:stream/consumers';

/*
 * A function's process: the entry that is deployed, in the environment that it is given, handed one event after the
 * other from standard input. What it answers to the last is its last line; what it logs nobody reads.
 */
const [, , entry = ''] = process.argv;
const events: readonly unknown[] = JSON.parse(await text(process.stdin));
const { handler } = await import(entry);
const context = { getRemainingTimeInMillis: () => 30_000 };
let answer: unknown;
for (const event of events) answer = await handler(event, context);
process.stdout.write(`${JSON.stringify(answer)}\n`);
process.exit(0);
