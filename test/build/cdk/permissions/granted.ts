import assert from 'node:assert/strict';
import type { Template } from 'aws-cdk-lib/assertions';
import {
  type Properties,
  readable,
  resourcesOf,
  type Statement,
  statementsIn,
} from '#test/build/cdk/stack/resources.ts';
import type { ResourcePolicy } from './policy.ts';

export const REGION = 'eu-west-1';
export const ACCOUNT = '123456789012';

/** A deployment as the template describes it, with names and ARNs in place of references. */
export class Granted {
  readonly #template: Template;

  constructor(template: Template) {
    this.#template = template;
  }

  /** Returns the environment variables of a function. */
  environmentOf(functionName: string): Readonly<Record<string, string>> {
    const { Environment } = this.#function(functionName);
    return this.#resolved((Environment as { Variables: unknown }).Variables) as Record<string, string>;
  }

  /** Returns the permissions of a function. */
  ofFunction(functionName: string): readonly Statement[] {
    return this.#ofRole(String(readable(this.#function(functionName)['Role'])).replace(/^<|\.Arn>$/g, ''));
  }

  /** Returns the permissions of the tasks of the relay's service. */
  ofTasks(): readonly Statement[] {
    const [task] = this.#of('AWS::ECS::TaskDefinition');
    assert.ok(task);
    return this.#ofRole(String(readable(task['TaskRoleArn'])).replace(/^<|\.Arn>$/g, ''));
  }

  /** Returns the permissions of the role with this name. */
  ofRole(name: string): readonly Statement[] {
    const [id] =
      [...resourcesOf(this.#template, 'AWS::IAM::Role')].find(
        ([, { RoleName }]) => this.#resolved(RoleName ?? '') === name,
      ) ?? [];
    assert.ok(id, `there is no role ${name}`);
    return this.#ofRole(id);
  }

  /** Returns the value of an output of the stack. */
  output(name: string): string {
    const { Outputs } = this.#template.toJSON() as {
      Outputs: Record<string, { Value: unknown } | undefined>;
    };
    return String(this.#resolved(Outputs[name]?.Value ?? assert.fail(`there is no output ${name}`)));
  }

  /** Returns the permissions in a managed policy. */
  ofPolicy(name: string): readonly Statement[] {
    const found = this.#of('AWS::IAM::ManagedPolicy').find(
      ({ ManagedPolicyName }) => this.#resolved(ManagedPolicyName) === `${name}-${REGION}`,
    );
    assert.ok(found, `there is no policy ${name}`);
    return this.#statements(found['PolicyDocument']);
  }

  /** The resource policies of table and queues. */
  get resourcePolicies(): readonly ResourcePolicy[] {
    const tables = this.#of('AWS::DynamoDB::Table').map(({ TableName, ResourcePolicy }) => ({
      resource: `arn:aws:dynamodb:${REGION}:${ACCOUNT}:table/${TableName}`,
      statements: this.#statements((ResourcePolicy as { PolicyDocument: unknown }).PolicyDocument),
    }));
    const queues = this.#of('AWS::SQS::QueuePolicy').map(({ Queues, PolicyDocument }) => ({
      resource: this.#arn(/<(\w+)>/.exec(String(readable(Queues)))?.[1] ?? ''),
      statements: this.#statements(PolicyDocument),
    }));
    return [...tables, ...queues];
  }

  /** Returns the event sources of functions, with the functions' names. */
  sources(): readonly { readonly functionName: string; readonly arn: string; readonly onFailure?: string }[] {
    return this.#of('AWS::Lambda::EventSourceMapping').map((mapping) => {
      const [, id = ''] = /<(\w+)>/.exec(String(readable(mapping['FunctionName']))) ?? [];
      const { FunctionName } = resourcesOf(this.#template, 'AWS::Lambda::Function').get(id) ?? {};
      const onFailure = (mapping['DestinationConfig'] as { OnFailure?: { Destination: unknown } } | undefined)
        ?.OnFailure?.Destination;
      return {
        functionName: String(FunctionName),
        arn: String(this.#resolved(mapping['EventSourceArn'])),
        ...(onFailure === undefined ? {} : { onFailure: String(this.#resolved(onFailure)) }),
      };
    });
  }

  #of(type: string): readonly Properties[] {
    return [...resourcesOf(this.#template, type).values()];
  }

  #function(name: string): Properties {
    const found = this.#of('AWS::Lambda::Function').find(({ FunctionName }) => FunctionName === name);
    assert.ok(found, `there is no function ${name}`);
    return found;
  }

  #ofRole(id: string): readonly Statement[] {
    return this.#of('AWS::IAM::Policy')
      .filter(({ Roles }) => (readable(Roles) as string[]).includes(`<${id}>`))
      .flatMap(({ PolicyDocument }) => this.#statements(PolicyDocument));
  }

  #statements(document: unknown): readonly Statement[] {
    return statementsIn(document).map((statement) => this.#resolved(statement) as Statement);
  }

  /** Replaces each reference by the value that CloudFormation fills in. */
  #resolved(value: unknown): unknown {
    const text = JSON.stringify(readable(value));
    return JSON.parse(
      text.replace(/<([\w:.]+)>/g, (_, reference: string) => {
        if (reference.startsWith('AWS::')) {
          const known = {
            'AWS::Partition': 'aws',
            'AWS::Region': REGION,
            'AWS::AccountId': ACCOUNT,
            'AWS::URLSuffix': 'amazonaws.com',
          };
          return known[reference as keyof typeof known];
        }
        const [id = '', attribute] = reference.split('.');
        return attribute === undefined ? this.#reference(id) : this.#arn(id, attribute);
      }),
    );
  }

  #reference(id: string): string {
    const queue = resourcesOf(this.#template, 'AWS::SQS::Queue').get(id);
    if (queue) return `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/${queue['QueueName']}`;
    const table = resourcesOf(this.#template, 'AWS::DynamoDB::Table').get(id);
    return String(table?.['TableName'] ?? id);
  }

  #arn(id: string, attribute = 'Arn'): string {
    const queue = resourcesOf(this.#template, 'AWS::SQS::Queue').get(id);
    if (queue) return `arn:aws:sqs:${REGION}:${ACCOUNT}:${queue['QueueName']}`;
    const called = resourcesOf(this.#template, 'AWS::Lambda::Function').get(id);
    if (called) return `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${called['FunctionName']}`;
    const table = resourcesOf(this.#template, 'AWS::DynamoDB::Table').get(id);
    const arn = `arn:aws:dynamodb:${REGION}:${ACCOUNT}:table/${table?.['TableName']}`;
    if (table) return attribute === 'StreamArn' ? `${arn}/stream/2026-11-22T12:00:00.000` : arn;
    const { RoleName } = resourcesOf(this.#template, 'AWS::IAM::Role').get(id) ?? {};
    return `arn:aws:iam::${ACCOUNT}:role/${RoleName === undefined ? id : this.#resolved(RoleName)}`;
  }
}
