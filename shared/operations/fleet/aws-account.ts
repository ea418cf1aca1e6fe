import { type CloudWatchClient, type MetricAlarm, paginateDescribeAlarms } from '@aws-sdk/client-cloudwatch';
import { DescribeLimitsCommand, DescribeTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  GetAccountSettingsCommand,
  type LambdaClient,
  paginateListEventSourceMappings,
} from '@aws-sdk/client-lambda';
import type { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { RELEASE_TAG } from '#shared/state/dynamodb/table-definition.ts';
import { alarmName } from '#shared/telemetry/alarm-name.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { type Account, type AlarmSeen, FED_FUNCTIONS, type FedFunction, type Quotas } from './account.ts';
import { FleetError } from './fleet.ts';

export interface AwsAccountDeps {
  readonly dynamoDb: DynamoDBClient;
  readonly lambda: LambdaClient;
  readonly cloudWatch: CloudWatchClient;
  readonly table: Pick<DynamoDbTable, 'tag'>;
  /** Also the prefix of the names of its functions and alarms. */
  readonly tableName: string;
}

/** Reads the account and region of a deployment, with the caller's permissions. */
export class AwsAccount implements Account {
  readonly #deps: AwsAccountDeps;

  constructor(deps: AwsAccountDeps) {
    this.#deps = deps;
  }

  release(): Promise<string | undefined> {
    return this.#deps.table.tag(RELEASE_TAG);
  }

  async quotas(): Promise<Quotas> {
    const [invocations, batches, writes] = await Promise.all([
      this.#invocations(),
      Promise.all(FED_FUNCTIONS.map(async (name) => [name, await this.#batches(name)] as const)),
      this.#writes(),
    ]);
    return {
      invocations,
      batches: Object.fromEntries(batches) as Record<FedFunction, number>,
      ...writes,
    };
  }

  async alarms(): Promise<readonly AlarmSeen[]> {
    const { cloudWatch: client, tableName: prefix } = this.#deps;
    const pages = paginateDescribeAlarms({ client }, { AlarmNamePrefix: alarmName(prefix, '') });
    const found = await permitted('alarms', 'cloudwatch:DescribeAlarms', () => Array.fromAsync(pages));
    return found.flatMap(({ MetricAlarms = [] }) => MetricAlarms).map((alarm) => alarmSeen(alarm, prefix));
  }

  async #invocations(): Promise<number> {
    const { AccountLimit } = await permitted('concurrent executions', 'lambda:GetAccountSettings', () =>
      this.#deps.lambda.send(new GetAccountSettingsCommand()),
    );
    return AccountLimit?.UnreservedConcurrentExecutions ?? 0;
  }

  async #batches(name: FedFunction): Promise<number> {
    const { lambda: client, tableName } = this.#deps;
    const pages = paginateListEventSourceMappings({ client }, { FunctionName: `${tableName}-${name}` });
    const found = await permitted(`queue of ${name}`, 'lambda:ListEventSourceMappings', () =>
      Array.fromAsync(pages),
    );
    const mappings = found.flatMap(({ EventSourceMappings = [] }) => EventSourceMappings);
    return mappings.reduce((sum, { ScalingConfig }) => sum + (ScalingConfig?.MaximumConcurrency ?? 0), 0);
  }

  async #writes(): Promise<Pick<Quotas, 'writesAtOnce' | 'mostWrites'>> {
    const { dynamoDb, tableName } = this.#deps;
    const [{ TableMaxWriteCapacityUnits = 0 }, { Table }] = await Promise.all([
      permitted('limits of tables', 'dynamodb:DescribeLimits', () =>
        dynamoDb.send(new DescribeLimitsCommand()),
      ),
      permitted('table', 'dynamodb:DescribeTable', () =>
        dynamoDb.send(new DescribeTableCommand({ TableName: tableName })),
      ),
    ]);
    // -1: no limit.
    const own = Table?.OnDemandThroughput?.MaxWriteRequestUnits ?? -1;
    const mostWrites = own < 0 ? TableMaxWriteCapacityUnits : Math.min(own, TableMaxWriteCapacityUnits);
    const writesAtOnce = Table?.WarmThroughput?.WriteUnitsPerSecond;
    // 0 means unknown: a stand-in for DynamoDB reports it.
    return { ...(writesAtOnce ? { writesAtOnce } : {}), mostWrites };
  }
}

function alarmSeen(
  { AlarmName = '', AlarmDescription = '', StateValue, ActionsEnabled, ...alarm }: MetricAlarm,
  prefix: string,
): AlarmSeen {
  return {
    name: AlarmName.slice(alarmName(prefix, '').length),
    state: StateValue ?? 'INSUFFICIENT_DATA',
    since: (alarm.StateTransitionedTimestamp ?? alarm.StateUpdatedTimestamp)?.getTime() ?? 0,
    description: AlarmDescription,
    receivers: ActionsEnabled ? (alarm.AlarmActions ?? []).length : 0,
  };
}

async function permitted<T>(what: string, right: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw new FleetError(
      `Can't read the ${what} from AWS (${errorMessage(error)}). Check the account and region, and that you have ${right}.`,
      { cause: error },
    );
  }
}
