import { type AwsCall, functionOf } from '#test/world/aws-over-http.ts';
import { ACCOUNT, REGION } from './granted.ts';
import type { IamRequest } from './policy.ts';

type Fields = Readonly<Record<string, unknown>>;
type Attributes = Readonly<Record<string, { readonly S?: string }>>;

const arnOf = (service: string, resource: string, region = REGION): string =>
  `arn:aws:${service}:${region}:${ACCOUNT}:${resource}`;

/** The resource of an action that supports no resources. */
const OF_ACCOUNT = '*';

/** All SDKs call over TLS. */
const SECURE = { 'aws:SecureTransport': ['true'] };

const request = (action: string, resource: string, context: IamRequest['context'] = {}): IamRequest => ({
  action,
  resource,
  context: { ...SECURE, ...context },
});

/**
 * Returns the IAM requests of a call (Service Authorization Reference; DynamoDB Developer Guide, "Using IAM policy
 * conditions" and "Using IAM with DynamoDB transactions"). Throws for an unknown call.
 */
export const iamRequests = (call: AwsCall): readonly IamRequest[] =>
  requestsOf(call).flatMap((each) => [each, ...keyRequests(each)]);

function requestsOf({ service, operation, input, region, path }: AwsCall): readonly IamRequest[] {
  switch (service) {
    case 'dynamodb':
      return tableRequests(operation, input);
    case 'sqs':
      return queueRequests(operation, input);
    case 'scheduler': {
      const [, name] = /^\/schedules\/([^/?]+)/.exec(path) ?? [];
      const { RoleArn } = input['Target'] as { RoleArn: string };
      return [
        request('scheduler:CreateSchedule', arnOf('scheduler', `schedule/${input['GroupName']}/${name}`)),
        request('iam:PassRole', RoleArn, { 'iam:PassedToService': ['scheduler.amazonaws.com'] }),
      ];
    }
    case 'events': {
      const names = (input['Entries'] as readonly { EventBusName: string }[]).map(
        (each) => each.EventBusName,
      );
      return [...new Set(names)].map((name) =>
        request('events:PutEvents', name.startsWith('arn:') ? name : arnOf('events', `event-bus/${name}`)),
      );
    }
    case 'secretsmanager':
      return [request(`secretsmanager:${operation}`, String(input['SecretId']))];
    case 'eks':
      return [
        request('eks:DescribeCluster', arnOf('eks', `cluster${path.replace('/clusters', '')}`, region)),
      ];
    case 'lambda':
      if (operation === 'Invoke')
        return [request('lambda:InvokeFunction', arnOf('lambda', `function:${functionOf(path)}`))];
      return [request(`lambda:${operation}`, OF_ACCOUNT)];
    case 'monitoring':
      // The request covers all alarms, regardless of the names in the call.
      return [request(`cloudwatch:${operation}`, arnOf('cloudwatch', 'alarm:*'))];
    case 'sts':
      // Every principal may call GetCallerIdentity.
      return operation === 'AssumeRole' ? [request('sts:AssumeRole', String(input['RoleArn']))] : [];
    default:
      throw new Error(`nobody knows what ${service} ${operation} asks for`);
  }
}

/** The key of table and queues. */
export const DATA_KEY = `arn:aws:kms:${REGION}:${ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab`;

/**
 * Returns the requests that table or queue make of KMS as the caller (DynamoDB Developer Guide, "Encryption at rest"; SQS Developer
 * Guide, "Key management").
 */
export function keyRequests({ action }: IamRequest): readonly IamRequest[] {
  const [service, operation = ''] = action.split(':');
  const actions =
    service === 'dynamodb' && /Item$|^Query$|Records$/.test(operation)
      ? ['Decrypt']
      : action === 'sqs:SendMessage'
        ? ['GenerateDataKey', 'Decrypt']
        : action === 'sqs:ReceiveMessage'
          ? ['Decrypt']
          : [];
  const context = { 'kms:ViaService': [`${service}.${REGION}.amazonaws.com`] };
  return actions.map((each) => request(`kms:${each}`, DATA_KEY, context));
}

function tableRequests(operation: string, input: Fields): readonly IamRequest[] {
  const table = String(input['TableName'] ?? 'taintward');
  const arn = arnOf('dynamodb', `table/${table}`);
  const on = (action: string, keys: readonly string[], attributes: readonly string[] = [], index = '') =>
    request(`dynamodb:${action}`, `${arn}${index}`, {
      ...(keys.length > 0 ? { 'dynamodb:LeadingKeys': [...new Set(keys)] } : {}),
      ...(attributes.length > 0 ? { 'dynamodb:Attributes': [...new Set(attributes)] } : {}),
    });
  const one = (action: string, fields: Fields): IamRequest => {
    const item = (fields['Item'] ?? fields['Key']) as Attributes;
    const names = Object.values((fields['ExpressionAttributeNames'] ?? {}) as Record<string, string>);
    return on(action, [item['pk']?.S ?? ''], [...Object.keys(item), ...names]);
  };
  const batch = (items: readonly Attributes[]) => items.map(({ pk }) => pk?.S ?? '');
  switch (operation) {
    case 'GetItem':
    case 'PutItem':
    case 'UpdateItem':
    case 'DeleteItem':
      return [one(operation, input)];
    case 'TransactWriteItems':
      return (input['TransactItems'] as readonly Record<string, Fields>[]).flatMap((action) =>
        Object.entries(action).map(([kind, fields]) => one(`${kind}Item`, fields)),
      );
    case 'Query': {
      const values = input['ExpressionAttributeValues'] as Attributes;
      const index = input['IndexName'] === undefined ? '' : `/index/${input['IndexName']}`;
      return [on('Query', [(values[':pk'] ?? values[':clusterKey'])?.S ?? ''], [], index)];
    }
    case 'BatchGetItem': {
      const [{ Keys }] = Object.values(input['RequestItems'] as object) as [{ Keys: Attributes[] }];
      return [on('BatchGetItem', batch(Keys))];
    }
    case 'BatchWriteItem': {
      const [writes] = Object.values(input['RequestItems'] as object) as [
        { DeleteRequest: { Key: Attributes } }[],
      ];
      return [on('BatchWriteItem', batch(writes.map(({ DeleteRequest }) => DeleteRequest.Key)))];
    }
    case 'DescribeTable':
    case 'ListTagsOfResource':
      return [on(operation, [])];
    case 'DescribeLimits':
      return [request('dynamodb:DescribeLimits', OF_ACCOUNT)];
    default:
      throw new Error(`nobody knows what ${operation} asks for`);
  }
}

/** IAM's actions for batch operations. */
const OF_BATCH = {
  SendMessageBatch: 'SendMessage',
  ChangeMessageVisibilityBatch: 'ChangeMessageVisibility',
  DeleteMessageBatch: 'DeleteMessage',
};

function queueRequests(operation: string, input: Fields): readonly IamRequest[] {
  const { QueueUrl, QueueName, SourceArn, DestinationArn } = input as Record<string, string | undefined>;
  if (operation === 'StartMessageMoveTask') {
    // SQS moves messages with the caller's permissions.
    const moves = ['StartMessageMoveTask', 'ReceiveMessage', 'DeleteMessage', 'GetQueueAttributes'];
    return [
      ...moves.map((action) => request(`sqs:${action}`, SourceArn ?? '')),
      request('sqs:SendMessage', DestinationArn ?? ''),
    ];
  }
  const action = OF_BATCH[operation as keyof typeof OF_BATCH] ?? operation;
  return [request(`sqs:${action}`, arnOf('sqs', QueueName ?? QueueUrl?.split('/').at(-1) ?? ''))];
}
