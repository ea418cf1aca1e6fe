import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { LambdaClient } from '@aws-sdk/client-lambda';
import { AwsAccount } from '#shared/operations/fleet/aws-account.ts';

type Input = Readonly<Record<string, unknown>>;
type Answers = Readonly<Record<string, (input: Input) => object>>;

/** The account of a stack `tw` with these answers by command. */
function account(answers: Answers) {
  const calls: string[] = [];
  const send = async (command: { readonly input: Input }) => {
    const name = command.constructor.name.replace('Command', '');
    calls.push(`${name} ${Object.values(command.input).filter(Boolean).join(' ')}`.trim());
    return answers[name]?.(command.input) ?? {};
  };
  const withSend = <Client extends object>(client: Client) => Object.assign(client, { send });
  const settings = { region: 'eu-west-1' };
  return {
    calls,
    account: new AwsAccount({
      dynamoDb: withSend(new DynamoDBClient(settings)),
      lambda: withSend(new LambdaClient(settings)),
      cloudWatch: withSend(new CloudWatchClient(settings)),
      table: { tag: async (name) => (name === 'taintward:release' ? '1.2.3' : undefined) },
      tableName: 'tw',
    }),
  };
}

const refused = () => {
  throw Object.assign(new Error('no identity-based policy allows it'), { name: 'AccessDeniedException' });
};

const QUOTAS: Answers = {
  GetAccountSettings: () => ({
    AccountLimit: { ConcurrentExecutions: 1000, UnreservedConcurrentExecutions: 900 },
  }),
  ListEventSourceMappings: ({ FunctionName }) => ({
    EventSourceMappings: [{ ScalingConfig: { MaximumConcurrency: FunctionName === 'tw-evict' ? 50 : 20 } }],
  }),
  DescribeLimits: () => ({ TableMaxWriteCapacityUnits: 40_000 }),
  DescribeTable: () => ({ Table: { WarmThroughput: { WriteUnitsPerSecond: 4_000 } } }),
};

test("returns the account's free concurrency, the concurrency of its functions, and the table's capacity", async () => {
  assert.deepEqual(await account(QUOTAS).account.quotas(), {
    invocations: 900,
    batches: { 'node-delta': 20, 'pod-delta': 20, evict: 50 },
    writesAtOnce: 4_000,
    mostWrites: 40_000,
  });
});

test("uses the table's own limit if it is lower", async () => {
  const limited = (most: number) =>
    account({
      ...QUOTAS,
      DescribeTable: () => ({ Table: { OnDemandThroughput: { MaxWriteRequestUnits: most } } }),
    }).account.quotas();
  assert.equal((await limited(500)).mostWrites, 500);
  assert.deepEqual([(await limited(-1)).mostWrites, (await limited(-1)).writesAtOnce], [40_000, undefined]);
});

test("returns the stack's alarms from all pages with the number of their receivers", async () => {
  const at = new Date(0);
  const changed = { StateTransitionedTimestamp: new Date(1), StateUpdatedTimestamp: new Date(2) };
  const { account: opened, calls } = account({
    DescribeAlarms: ({ NextToken }) =>
      NextToken
        ? {
            MetricAlarms: [
              { AlarmName: 'tw: b', StateValue: 'ALARM', ...changed },
              {
                AlarmName: 'tw: c',
                StateValue: 'OK',
                ActionsEnabled: false,
                AlarmActions: ['arn:aws:sns:eu-west-1:1:ops'],
              },
            ],
          }
        : {
            MetricAlarms: [
              {
                AlarmName: 'tw: a',
                AlarmDescription: 'Mend it.',
                StateValue: 'OK',
                ActionsEnabled: true,
                AlarmActions: ['arn:aws:sns:eu-west-1:1:ops'],
                StateUpdatedTimestamp: at,
              },
            ],
            NextToken: 'more',
          },
  });
  assert.deepEqual(await opened.alarms(), [
    { name: 'a', state: 'OK', since: 0, description: 'Mend it.', receivers: 1 },
    { name: 'b', state: 'ALARM', since: 1, description: '', receivers: 0 },
    { name: 'c', state: 'OK', since: 0, description: '', receivers: 0 },
  ]);
  assert.equal(calls[0], 'DescribeAlarms tw:');
});

test('names the missing permission in one sentence', async () => {
  const { account: opened } = account({ ...QUOTAS, GetAccountSettings: refused, DescribeAlarms: refused });
  await assert.rejects(opened.quotas(), {
    name: 'FleetError',
    message:
      /^Can't read the concurrent executions from AWS \(.*\)\. .* that you have lambda:GetAccountSettings\.$/,
  });
  await assert.rejects(opened.alarms(), { name: 'FleetError', message: /cloudwatch:DescribeAlarms\.$/ });
});
