import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { App } from 'aws-cdk-lib';
import { ConfigError, readConfig } from '../../../../cdk/config.ts';
import { addStacks } from '../../../../cdk/stacks.ts';
import { resourcesOf, resourceWith } from './resources.ts';
import { synthesized, synthesizedAgent } from './synthesized.ts';

const LOCALSTACK = { 'taintward:endpoint': 'localstack' };

const read = (account: string | undefined, more: Readonly<Record<string, string>> = {}) =>
  readConfig(new App({ context: { ...LOCALSTACK, ...more } }).node, account);

/** Returns the values of an environment variable in a template, wherever it is set. */
const valuesOf = (name: string, context: Readonly<Record<string, unknown>>) =>
  [...resourcesOf(synthesized(context), 'AWS::Lambda::Function').values()].flatMap(({ Environment }) => {
    const { Variables } = Environment as { readonly Variables: Readonly<Record<string, unknown>> };
    return name in Variables ? [Variables[name]] : [];
  });

describe('a stack for LocalStack', () => {
  test("is rejected for every account except LocalStack's", () => {
    for (const account of ['123456789012', '000000000001']) {
      assert.throws(
        () => read(account),
        new ConfigError(
          `The context key taintward:endpoint cannot be used: localstack is for account 000000000000 alone, and this is account ${account}.`,
        ),
      );
    }
    assert.equal(read('000000000000').endpoint, 'localstack');
  });

  test("names LocalStack's account, so that the CDK deploys it to no other account for which it has credentials", () => {
    const agents = { 'taintward:agents': '{"edge-1": {"cluster": "prod"}}' };
    const stacks = addStacks(new App(), read(undefined, agents));
    assert.equal(stacks.service.account, '000000000000');
    assert.equal(stacks.agents.get('edge-1')?.account, '000000000000');
  });

  test('runs no relays, and rejects settings for them', () => {
    assert.equal(resourcesOf(synthesized(LOCALSTACK), 'AWS::ECS::Service').size, 0);
    assert.throws(
      () => read(undefined, { 'taintward:relay': 'fargate' }),
      /^ConfigError: The context key taintward:relay must be external, or not set, beside taintward:endpoint=localstack/,
    );
  });

  test('sets the endpoint of its functions, relays, and agents, unlike any other stack', () => {
    const agents = { 'taintward:agents': '{"edge-1": {"cluster": "prod"}}' };
    assert.deepEqual(valuesOf('ENDPOINT', LOCALSTACK), ['localstack', 'localstack', 'localstack']);
    assert.match(JSON.stringify(synthesized(LOCALSTACK).toJSON()), / ENDPOINT=localstack .*npm run relay/);
    const agent = JSON.stringify(synthesizedAgent('edge-1', { ...LOCALSTACK, ...agents }).toJSON());
    assert.match(agent, / ENDPOINT=localstack /);
    for (const context of [{}, { 'taintward:relay': 'external' }]) {
      assert.doesNotMatch(JSON.stringify(synthesized(context).toJSON()), /ENDPOINT/);
    }
    assert.doesNotMatch(JSON.stringify(synthesizedAgent('edge-1', agents).toJSON()), /ENDPOINT/);
  });

  test('links to no page of the AWS console', () => {
    assert.equal('Dashboard' in synthesized(LOCALSTACK).findOutputs('*'), false);
    assert.ok('Dashboard' in synthesized({ 'taintward:relay': 'external' }).findOutputs('*'));
  });

  test('has the same queues, table, functions, and event sources as a stack for AWS', () => {
    const external = synthesized({ 'taintward:relay': 'external' });
    const types = [
      'AWS::SQS::Queue',
      'AWS::DynamoDB::Table',
      'AWS::Lambda::EventSourceMapping',
      'AWS::CloudWatch::Alarm',
    ];
    for (const type of types) {
      assert.deepEqual(
        [...resourcesOf(synthesized(LOCALSTACK), type).keys()],
        [...resourcesOf(external, type).keys()],
      );
    }
    assert.ok(resourceWith(synthesized(LOCALSTACK), 'AWS::DynamoDB::Table', 'TableName', 'taintward'));
  });
});
