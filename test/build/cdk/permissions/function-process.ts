import { text } from 'node:stream/consumers';

/*
 * A function's process: the deployed entry in its environment, which receives one event after the other from standard
 * input. Its last line of output is the response to the last event; its log is ignored.
 */
const [, , entry = ''] = process.argv;
const events: readonly unknown[] = JSON.parse(await text(process.stdin));
const { handler } = await import(entry);
const context = { getRemainingTimeInMillis: () => 30_000 };
let answer: unknown;
for (const event of events) answer = await handler(event, context);
process.stdout.write(`${JSON.stringify(answer)}\n`);
process.exit(0);
