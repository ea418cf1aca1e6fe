import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import type * as z from 'zod';
import { FUNCTION_NAMES, type FunctionName, roomOf } from '#deploy/build/bundle.ts';
import {
  deltaEnvironment,
  evictEnvironment,
  expiryEnvironment,
  heartbeatEnvironment,
  readEnvironment,
} from '#shared/aws/environment.ts';
import { Granted } from '../permissions/granted.ts';
import { type Properties, readable, resourcesOf, resourceWith, statementsIn } from './resources.ts';
import { synthesized } from './synthesized.ts';

const ENVIRONMENTS: Readonly<Record<FunctionName, z.ZodObject>> = {
  'node-delta': deltaEnvironment,
  'pod-delta': deltaEnvironment,
  evict: evictEnvironment,
  expiry: expiryEnvironment,
  heartbeat: heartbeatEnvironment,
};

let template: Template;
/** A queue of LocalStack's account. */
const QUEUE_ARN = 'arn:aws:sqs:us-east-1:000000000000:q';

before(() => {
  template = synthesized();
});

const functionNamed = (name: FunctionName, within = template) =>
  resourceWith(within, 'AWS::Lambda::Function', 'FunctionName', `taintward-${name}`);

function mappingOf(name: FunctionName, within = template): Properties {
  const { id } = functionNamed(name, within);
  const found = [...resourcesOf(within, 'AWS::Lambda::EventSourceMapping').values()].filter(
    ({ FunctionName }) => JSON.stringify(FunctionName) === JSON.stringify({ Ref: id }),
  );
  assert.equal(found.length, 1);
  return readable(found[0]) as Properties;
}

describe('each function', () => {
  test('has exactly the environment variables that it reads', () => {
    const whole = synthesized({ 'taintward:eventBus': 'ops', 'taintward:endpoint': 'localstack' });
    for (const name of FUNCTION_NAMES) {
      const { properties } = functionNamed(name, whole);
      const { Variables: given } = properties['Environment'] as { Variables: Properties };
      assert.deepEqual(Object.keys(given).sort(), Object.keys(ENVIRONMENTS[name].shape).sort());
      // CloudFormation fills in a URL, or another text where the variable requires one.
      const { CLUSTER_GRANTS } = new Granted(whole).environmentOf(`taintward-${name}`);
      const others = { CLUSTER_GRANTS, EVICTIONS_DUE_ARN: QUEUE_ARN, SCHEDULE_ROLE_ARN: QUEUE_ARN };
      const filled = Object.entries(given).map(([key, value]) => [
        key,
        typeof value === 'string' ? value : (Object(others)[key] ?? 'https://example.com/1/q'),
      ]);
      readEnvironment(ENVIRONMENTS[name], Object.fromEntries(filled));
    }
  });

  test('has the code of its directory', () => {
    const codeOf = (name: FunctionName) => JSON.stringify(functionNamed(name).properties['Code']);
    assert.equal(new Set(FUNCTION_NAMES.map(codeOf)).size, new Set(FUNCTION_NAMES.map(roomOf)).size);
    assert.equal(codeOf('node-delta'), codeOf('pod-delta'));
  });
});

describe('Lambda stops a chain of 16 invocations of one function as a loop,', () => {
  /** Returns the functions that receive a function's messages, by way of a queue that it may send to. */
  const wakes = (name: FunctionName): readonly FunctionName[] => {
    const [roleId] = (functionNamed(name).properties['Role'] as { 'Fn::GetAtt': string[] })['Fn::GetAtt'];
    const sendsTo = [...resourcesOf(template, 'AWS::IAM::Policy').values()]
      .filter(({ Roles }) => JSON.stringify(readable(Roles)) === JSON.stringify([`<${roleId}>`]))
      .flatMap(({ PolicyDocument }) => statementsIn(PolicyDocument))
      .filter(({ Effect, Action }) => Effect === 'Allow' && Action.includes('sqs:SendMessage'))
      .flatMap(({ Resource }) => Resource);
    return FUNCTION_NAMES.filter(
      (each) => each !== 'heartbeat' && sendsTo.includes(String(mappingOf(each)['EventSourceArn'])),
    );
  };
  const reaches = (from: FunctionName, to: FunctionName, passed: readonly FunctionName[] = []): boolean =>
    wakes(from).some(
      (next) => next === to || (!passed.includes(next) && reaches(next, to, [...passed, next])),
    );

  test('except for functions that are meant to invoke themselves, which alone allow loops', () => {
    assert.deepEqual(wakes('node-delta'), ['evict']);
    const loops = FUNCTION_NAMES.filter((name) => reaches(name, name));
    assert.deepEqual(loops, ['evict']);
    for (const name of FUNCTION_NAMES) {
      const { RecursiveLoop } = functionNamed(name).properties;
      assert.equal(RecursiveLoop, loops.includes(name) ? 'Allow' : undefined, name);
    }
  });
});
