import { z } from 'zod';
import { TaskDefinition } from './image/task.ts';

const Events = z.object({
  events: z.array(z.object({ timestamp: z.number(), message: z.string() })).default([]),
  nextToken: z.string().optional(),
});

const Functions = z.object({ Functions: z.array(z.object({ FunctionName: z.string() })) });
const Mappings = z.object({ EventSourceMappings: z.array(z.object({ UUID: z.string() })) });
const LogGroups = z.object({ logGroups: z.array(z.object({ logGroupName: z.string() })) });
const Configuration = z.object({
  Role: z.string(),
  Environment: z.object({ Variables: z.record(z.string(), z.string()) }),
});

/** One invocation of a function, from its `REPORT` line. */
export interface Invocation {
  readonly durationMs: number;
  readonly memoryMiB: number;
}

/** The few calls for which the service has no SDK client. The stand-in accepts them without a signature. */
export class RawAws {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** Invokes a function and returns its result. Rejects when the function failed. */
  async invoke(functionName: string, event: object): Promise<unknown> {
    const response = await this.#fetch('lambda', `/2015-03-31/functions/${functionName}/invocations`, event);
    const text = await response.text();
    if (response.headers.has('x-amz-function-error')) throw new Error(`${functionName} failed: ${text}`);
    return JSON.parse(text);
  }

  /** Returns the names of all functions and log groups of the account. */
  async names(): Promise<readonly string[]> {
    const functions = await this.#fetch('lambda', '/2015-03-31/functions/');
    const logGroups = await this.#fetch('logs', '/', {}, { target: 'Logs_20140328.DescribeLogGroups' });
    return [
      ...Functions.parse(await functions.json()).Functions.map(({ FunctionName }) => FunctionName),
      ...LogGroups.parse(await logGroups.json()).logGroups.map(({ logGroupName }) => logGroupName),
    ];
  }

  /** Returns a deployed function's environment variables. */
  async environment(functionName: string): Promise<Readonly<Record<string, string>>> {
    const path = `/2015-03-31/functions/${functionName}/configuration`;
    const response = await this.#fetch('lambda', path);
    return Configuration.parse(await response.json()).Environment.Variables;
  }

  /** Sets whether a function may be invoked repeatedly in a chain of requests. */
  async setLoops(functionName: string, RecursiveLoop: 'Allow' | 'Terminate'): Promise<void> {
    const path = `/2024-08-31/functions/${functionName}/recursion-config`;
    await this.#fetch('lambda', path, { RecursiveLoop }, { method: 'PUT' });
  }

  /** Switches on or off that a function receives from its queue. */
  async setReceiving(functionName: string, Enabled: boolean): Promise<void> {
    const mappings = '/2015-03-31/event-source-mappings/';
    const response = await this.#fetch('lambda', `${mappings}?FunctionName=${functionName}`);
    for (const { UUID } of Mappings.parse(await response.json()).EventSourceMappings)
      await this.#fetch('lambda', `${mappings}${UUID}`, { Enabled }, { method: 'PUT' });
  }

  /** Returns the ECS task definition of that name. */
  async taskDefinition(taskDefinition: string): Promise<TaskDefinition> {
    const response = await this.#fetch(
      'ecs',
      '/',
      { taskDefinition },
      { target: 'AmazonEC2ContainerServiceV20141113.DescribeTaskDefinition' },
    );
    return TaskDefinition.parse(await response.json());
  }

  /** Returns the ARN of a function's role. */
  async role(functionName: string): Promise<string> {
    const response = await this.#fetch('lambda', `/2015-03-31/functions/${functionName}/configuration`);
    return Configuration.parse(await response.json()).Role;
  }

  /** Returns a function's log since a time, in order. */
  async logged(logGroupName: string, since: number): Promise<readonly string[]> {
    const messages: string[] = [];
    let nextToken: string | undefined;
    do {
      const query = { logGroupName, startTime: since, ...(nextToken ? { nextToken } : {}) };
      const response = await this.#fetch('logs', '/', query, { target: 'Logs_20140328.FilterLogEvents' });
      const page = Events.parse(await response.json());
      messages.push(...page.events.map(({ message }) => message));
      nextToken = page.nextToken;
    } while (nextToken);
    return messages;
  }

  /** Returns a function's invocations since a time. */
  async invocations(logGroupName: string, since: number): Promise<readonly Invocation[]> {
    const lines = await this.logged(logGroupName, since);
    return lines.flatMap((line) => {
      const found = /^REPORT .*Duration: ([\d.]+) ms\tBilled.*Memory Size: (\d+) MB/.exec(line);
      return found ? [{ durationMs: Number(found[1]), memoryMiB: Number(found[2]) }] : [];
    });
  }

  async #fetch(
    service: string,
    path: string,
    body?: object,
    { target, method = body ? 'POST' : 'GET' }: { readonly target?: string; readonly method?: string } = {},
  ): Promise<Response> {
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: {
        authorization: `AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/${service}/aws4_request, SignedHeaders=host, Signature=0`,
        'content-type': 'application/x-amz-json-1.1',
        ...(target ? { 'x-amz-target': target } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    if (!response.ok)
      throw new Error(`${service} ${target ?? path}: ${response.status} ${await response.text()}`);
    return response;
  }
}
