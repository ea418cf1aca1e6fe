import { randomBytes } from 'node:crypto';
import type { Context, SQSRecord } from 'aws-lambda';
import { hashOf, joined, lineageIn, lineageText, MAX_CHAIN } from './lineage.ts';

/**
 * The message attribute that carries the trace header here: the stand-in loses the system attribute of that name in
 * batches.
 */
export const TRACE_ATTRIBUTE = 'AWSTraceHeader';

type Handler = (event: { readonly Records?: readonly Partial<SQSRecord>[] }, context: Context) => unknown;

/**
 * Returns a function's handler that is invoked as Lambda does it: it continues the chain of requests, and passes the
 * chain to the SDK. Where the function does not allow loops, invocations beyond the longest chain are skipped: their
 * messages stay hidden, as those of a failing function.
 */
export const counted =
  (handler: Handler): Handler =>
  async (event, context) => {
    const { functionName } = context;
    const lineage = joined((event.Records ?? []).map((record) => lineageIn(takeHeader(record))));
    const id = hashOf(functionName);
    const count = (lineage.get(id) ?? 0) + 1;
    if (count > MAX_CHAIN && !(await allowsLoops(functionName))) {
      const what = `RecursiveInvocationException: invocation ${count} of ${functionName} in a chain was dropped`;
      process.stdout.write(`${what}\n`);
      throw new Error(what);
    }
    const chain = lineageText(new Map([...lineage, [id, count]]));
    process.env['_X_AMZN_TRACE_ID'] = `Root=1-00000000-${hex(12)};Parent=${hex(8)};Sampled=0;${chain}`;
    return handler(event, context);
  };

/** Moves the trace header of a message to Lambda's attribute, and returns it. */
function takeHeader({ attributes, messageAttributes }: Partial<SQSRecord>): string | undefined {
  const { [TRACE_ATTRIBUTE]: sent } = messageAttributes ?? {};
  if (messageAttributes && sent) delete messageAttributes[TRACE_ATTRIBUTE];
  if (attributes && sent?.stringValue) attributes.AWSTraceHeader = sent.stringValue;
  return sent?.stringValue;
}

async function allowsLoops(functionName: string): Promise<boolean> {
  const { AWS_ENDPOINT_URL } = process.env;
  const answer = await fetch(`${AWS_ENDPOINT_URL}/2024-08-31/functions/${functionName}/recursion-config`);
  const { RecursiveLoop } = (await answer.json()) as { readonly RecursiveLoop?: string };
  return RecursiveLoop === 'Allow';
}

const hex = (bytes: number): string => randomBytes(bytes).toString('hex');
