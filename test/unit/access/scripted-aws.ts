import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { AwsClients } from '#shared/access/aws-clients.ts';

/** An answer of EKS, STS, or Secrets Manager: a result, or an error of this name. */
export type Answer = { readonly result: unknown } | { readonly error: string; readonly message?: string };

/** A call as the server received it. */
export interface AwsCall {
  /** For example `DescribeCluster`. */
  readonly operation: string;
  readonly input: string;
  /** Region in the request's signature. */
  readonly region: string;
  readonly accessKeyId: string;
}

/** The answer of each operation. A function is called for every request. */
export type Answers = Readonly<Record<string, Answer | (() => Answer)>>;

/** Serves AWS with the test's answers and returns clients whose own access key is `OWN`. The server closes at the end of the test. */
export async function scriptedAws(t: TestContext, answers: Answers) {
  const calls: AwsCall[] = [];
  const server = createServer(async (request, response) => {
    const input = await text(request);
    const operation = operationOf(request, input);
    calls.push({ operation, input, ...signerOf(request) });
    const scripted = answers[operation] ?? { error: 'NotScripted' };
    const answer = typeof scripted === 'function' ? scripted() : scripted;
    const [status, body] = operation === 'AssumeRole' ? queryAnswer(answer) : jsonAnswer(answer);
    const type = operation === 'AssumeRole' ? 'text/xml' : 'application/json';
    response.writeHead(status, { 'content-type': type }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const aws = new AwsClients({
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: 'OWN', secretAccessKey: 'secret' },
  });
  const operations = () => calls.map(({ operation }) => operation);
  return { aws, calls, operations };
}

/**
 * Returns the operation of a request. STS takes a form, and Secrets Manager names the operation in a header. The only
 * EKS operation in use is `DescribeCluster`.
 */
function operationOf({ headers }: IncomingMessage, input: string): string {
  const target = headers['x-amz-target'];
  if (target !== undefined) return `${target}`.replace(/^.*\./, '');
  return new URLSearchParams(input).get('Action') ?? 'DescribeCluster';
}

function signerOf({ headers }: IncomingMessage): { region: string; accessKeyId: string } {
  const [, accessKeyId = '', region = ''] =
    /Credential=([^/]+)\/\d+\/([^/]+)\//.exec(`${headers.authorization}`) ?? [];
  return { accessKeyId, region };
}

function jsonAnswer(answer: Answer): [number, string] {
  if ('result' in answer) return [200, JSON.stringify(answer.result)];
  return [400, JSON.stringify({ __type: answer.error, message: answer.message ?? 'no' })];
}

function queryAnswer(answer: Answer): [number, string] {
  if ('result' in answer) {
    return [
      200,
      `<AssumeRoleResponse><AssumeRoleResult>${answer.result}</AssumeRoleResult></AssumeRoleResponse>`,
    ];
  }
  const { error, message = 'no' } = answer;
  const fields = `<Type>Sender</Type><Code>${error}</Code><Message>${message}</Message>`;
  return [403, `<ErrorResponse><Error>${fields}</Error></ErrorResponse>`];
}
