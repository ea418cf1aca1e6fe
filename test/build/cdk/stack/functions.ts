import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import type * as z from 'zod';
import { DELTA_BATCH_SIZE } from '#functions/deltas/handler.ts';
import { EVICT_BATCH_SIZE } from '#functions/evict/handler.ts';
import {
  deltaEnvironment,
  evictEnvironment,
  expiryEnvironment,
  heartbeatEnvironment,
  readEnvironment,
} from '#shared/aws/environment.ts';
import { QUEUES } from '#shared/queues/queue-set.ts';
import { FUNCTION_NAMES, type FunctionName, roomOf } from '../../../../cdk/bundle.ts';
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
/** Of LocalStack's account. */
const QUEUE_ARN = 'arn:aws:sqs:us-east-1:000000000000:q';

before(() => {
  template = synthesized();
});

const functionNamed = (name: FunctionName, of = template) =>
  resourceWith(of, 'AWS::Lambda::Function', 'FunctionName', `taintward-${name}`);

function mappingOf(name: FunctionName, of = template): Properties {
  const { id } = functionNamed(name, of);
  const found = [...resourcesOf(of, 'AWS::Lambda::EventSourceMapping').values()].filter(
    ({ FunctionName }) => JSON.stringify(FunctionName) === JSON.stringify({ Ref: id }),
  );
  assert.equal(found.length, 1);
  return readable(found[0]) as Properties;
}

const queueArn = (name: string) =>
  `<${resourceWith(template, 'AWS::SQS::Queue', 'QueueName', `taintward-${name}`).id}.Arn>`;

describe('each function', () => {
  test('is traced, and may say so to X-Ray and nothing else of it, only when that is asked for', () => {
    const traced = synthesized({ 'taintward:tracing': 'true' });
    for (const name of FUNCTION_NAMES) {
      assert.equal(functionNamed(name).properties['TracingConfig'], undefined);
      assert.deepEqual(functionNamed(name, traced).properties['TracingConfig'], { Mode: 'Active' });
    }
    const said = JSON.stringify(traced.toJSON()).match(/"xray:\w+"/g);
    assert.deepEqual(new Set(said), new Set(['"xray:PutTelemetryRecords"', '"xray:PutTraceSegments"']));
    assert.doesNotMatch(JSON.stringify(template.toJSON()), /xray/);
  });

  test('that evicts counts by cluster only when that is asked for', () => {
    const variables = (of: Template) =>
      (functionNamed('evict', of).properties['Environment'] as { Variables: Record<string, unknown> })
        .Variables;
    assert.equal(variables(template)['METRICS_BY_CLUSTER'], 'false');
    const given = synthesized({ 'taintward:metricsByCluster': 'true' });
    assert.equal(variables(given)['METRICS_BY_CLUSTER'], 'true');
  });

  test('runs on Node 24 and arm64', () => {
    for (const name of FUNCTION_NAMES) {
      const { properties } = functionNamed(name);
      assert.equal(properties['Runtime'], 'nodejs24.x');
      assert.deepEqual(properties['Architectures'], ['arm64']);
      assert.equal(properties['Handler'], 'lambda.handler');
    }
    assert.equal(resourcesOf(template, 'AWS::Lambda::Function').size, FUNCTION_NAMES.length);
  });

  test('is given exactly the environment that it reads', () => {
    const whole = synthesized({ 'taintward:eventBus': 'ops', 'taintward:endpoint': 'localstack' });
    for (const name of FUNCTION_NAMES) {
      const { properties } = functionNamed(name, whole);
      const { Variables: given } = properties['Environment'] as { Variables: Properties };
      assert.deepEqual(Object.keys(given).sort(), Object.keys(ENVIRONMENTS[name].shape).sort());
      // What CloudFormation fills in is a URL, or an ARN, where one is asked for.
      const filled = Object.entries(given).map(([key, value]) => [
        key,
        typeof value === 'string' ? value : key.endsWith('_ARN') ? QUEUE_ARN : 'https://example.com/1/q',
      ]);
      readEnvironment(ENVIRONMENTS[name], Object.fromEntries(filled));
    }
  });

  test('tells an event bus where one is named, and none else', () => {
    const putsTo = (of: Template) =>
      ['AWS::IAM::Policy']
        .flatMap((type) => [...resourcesOf(of, type).values()])
        .flatMap(({ PolicyDocument }) => statementsIn(PolicyDocument))
        .filter(({ Action }) => Action.includes('events:PutEvents'))
        .map(({ Resource }) => Resource);
    assert.deepEqual(putsTo(template), []);
    assert.equal(JSON.stringify(template.toJSON()).includes('EVENT_BUS'), false);
    const arn = 'arn:aws:events:eu-west-1:123456789012:event-bus/ops';
    assert.deepEqual(putsTo(synthesized({ 'taintward:eventBus': arn })), [[arn], [arn], [arn]]);
    assert.match(putsTo(synthesized({ 'taintward:eventBus': 'ops' }))[0]?.[0] ?? '', /:event-bus\/ops$/);
  });

  test('writes to a log of its own, which is kept for as long as is chosen', () => {
    const chosen = synthesized({ 'taintward:logRetentionDays': 90 });
    for (const name of FUNCTION_NAMES) {
      const logName = `/aws/lambda/taintward-${name}`;
      const { id, properties } = resourceWith(chosen, 'AWS::Logs::LogGroup', 'LogGroupName', logName);
      assert.equal(properties['RetentionInDays'], 90);
      assert.deepEqual(functionNamed(name, chosen).properties['LoggingConfig'], { LogGroup: { Ref: id } });
    }
  });

  test('is the code of its room', () => {
    const codeOf = (name: FunctionName) => JSON.stringify(functionNamed(name).properties['Code']);
    assert.equal(new Set(FUNCTION_NAMES.map(codeOf)).size, new Set(FUNCTION_NAMES.map(roomOf)).size);
    assert.equal(codeOf('node-delta'), codeOf('pod-delta'));
  });
});

describe('a function that a queue feeds', () => {
  const fed = [
    { name: 'node-delta', spec: QUEUES.nodeDeltas, batch: DELTA_BATCH_SIZE, concurrency: 20 },
    { name: 'pod-delta', spec: QUEUES.podDeltas, batch: DELTA_BATCH_SIZE, concurrency: 20 },
    { name: 'evict', spec: QUEUES.evictionsDue, batch: EVICT_BATCH_SIZE, concurrency: 50 },
  ] as const;

  test('gets batches it can report in part, as many at a time as it is meant to', () => {
    for (const { name, spec, batch, concurrency } of fed) {
      const { FunctionName: _function, Tags: _tags, ...settings } = mappingOf(name);
      assert.deepEqual(settings, {
        EventSourceArn: queueArn(spec.name),
        BatchSize: batch,
        FunctionResponseTypes: ['ReportBatchItemFailures'],
        ScalingConfig: { MaximumConcurrency: concurrency },
      });
    }
  });

  test('has the time that the visibility of its messages is reckoned by', () => {
    for (const { name, spec } of fed) {
      assert.equal(functionNamed(name).properties['Timeout'], spec.functionTimeoutSeconds);
    }
  });

  test('has nothing reserved by default, and else no less than its source invokes at a time', () => {
    const reserved = (name: FunctionName, of?: Template) =>
      functionNamed(name, of).properties['ReservedConcurrentExecutions'];
    for (const name of FUNCTION_NAMES) assert.equal(reserved(name), undefined, name);
    const chosen = synthesized({ 'taintward:reserveConcurrency': 'true', 'taintward:evictConcurrency': 200 });
    for (const { name } of fed) {
      const { MaximumConcurrency } = mappingOf(name, chosen)['ScalingConfig'] as {
        MaximumConcurrency: number;
      };
      assert.ok(Number(reserved(name, chosen)) >= MaximumConcurrency, name);
    }
    // Whether it reaches a cluster it is asked beside its queue.
    assert.ok(Number(reserved('evict', chosen)) > 200);
    for (const name of ['expiry', 'heartbeat'] as const)
      assert.equal(reserved(name, chosen), undefined, name);
  });

  test('handles as many batches at a time as is chosen', () => {
    const chosen = synthesized({ 'taintward:evictConcurrency': '7', 'taintward:deltaConcurrency': 9 });
    const concurrency = (name: FunctionName) => mappingOf(name, chosen)['ScalingConfig'];
    assert.deepEqual(concurrency('evict'), { MaximumConcurrency: 7 });
    assert.deepEqual(concurrency('node-delta'), { MaximumConcurrency: 9 });
  });
});

describe('Lambda stops a chain of 16 invocations of one function, as a loop,', () => {
  /** The functions to which a message of a function leads, by way of a queue that it may send to. */
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

  test('unless a function is meant to have itself called again, and those alone say so', () => {
    assert.deepEqual(wakes('node-delta'), ['evict']);
    const loops = FUNCTION_NAMES.filter((name) => reaches(name, name));
    assert.deepEqual(loops, ['evict']);
    for (const name of FUNCTION_NAMES) {
      const { RecursiveLoop } = functionNamed(name).properties;
      assert.equal(RecursiveLoop, loops.includes(name) ? 'Allow' : undefined, name);
    }
  });
});

test('expiry hears of scheduled records that their time to live removed, and of nothing else', () => {
  const { FilterCriteria, ...settings } = mappingOf('expiry');
  const { Filters } = FilterCriteria as { Filters: readonly { Pattern: string }[] };
  assert.deepEqual(
    Filters.map(({ Pattern }) => JSON.parse(Pattern)),
    [
      {
        eventName: ['REMOVE'],
        userIdentity: { type: ['Service'], principalId: ['dynamodb.amazonaws.com'] },
        dynamodb: { OldImage: { sk: { S: [{ prefix: 'SCHEDULED#' }] } } },
      },
    ],
  );
  const { FunctionName: _function, Tags: _tags, ...rest } = settings;
  assert.deepEqual(rest, {
    EventSourceArn: `<${resourceWith(template, 'AWS::DynamoDB::Table', 'TableName', 'taintward').id}.StreamArn>`,
    BatchSize: 100,
    StartingPosition: 'TRIM_HORIZON',
    FunctionResponseTypes: ['ReportBatchItemFailures'],
    BisectBatchOnFunctionError: true,
    MaximumRecordAgeInSeconds: 23 * 3600,
    DestinationConfig: { OnFailure: { Destination: queueArn('expiry-dlq') } },
  });
});

test('heartbeat is called every minute', () => {
  const [[, rule] = ['', {}], ...others] = resourcesOf(template, 'AWS::Events::Rule');
  assert.equal(others.length, 0);
  assert.equal(rule['ScheduleExpression'], 'rate(1 minute)');
  const [target] = rule['Targets'] as readonly Properties[];
  assert.equal(readable(target?.['Arn']), `<${functionNamed('heartbeat').id}.Arn>`);
});

test('evict, and no other function, runs in the VPC that is chosen', () => {
  const chosen = synthesized({
    'taintward:vpcId': 'vpc-0123456789abcdef0',
    'taintward:subnetIds': 'subnet-0123456789abcdef0,subnet-0123456789abcdef1',
  });
  const inVpc = FUNCTION_NAMES.filter((name) => functionNamed(name, chosen).properties['VpcConfig']);
  assert.deepEqual(inVpc, ['evict']);
  const { SubnetIds } = functionNamed('evict', chosen).properties['VpcConfig'] as Properties;
  assert.deepEqual(SubnetIds, ['subnet-0123456789abcdef0', 'subnet-0123456789abcdef1']);
});
