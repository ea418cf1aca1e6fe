import { run } from './command.ts';
import type { DeployedStage } from './deployed-stage.ts';

/** Something that an account does, and a stand-in may not. */
interface Feature {
  readonly what: string;
  /** What shows it where it is not there; as it goes on after "asked, it shows: ". */
  readonly shows: string;
  /** By what it is proven all the same. */
  readonly provenBy: string;
  /** Whether the stand-in does it. */
  isThere(ask: Ask): Promise<boolean>;
}

interface Ask {
  readonly stage: DeployedStage;
  /** What the AWS CLI answers, as text; rejects when it is refused. */
  aws(...args: readonly string[]): Promise<string>;
  /** The same, by credentials of a user. */
  awsAs(key: { readonly id: string; readonly secret: string }, ...args: readonly string[]): Promise<string>;
}

const AWS_WITHIN_MS = 30_000;
const ANSWERS_WITHIN_MS = 2_000;
const STACK = 'taintward';

const FEATURES: readonly Feature[] = [
  {
    what: 'time to live: the removal of items, and its mark in the stream',
    shows: 'the table that the stack made has none',
    provenBy:
      "the item is removed by hand and `expiry` invoked with the record that DynamoDB documents; the stack's tests check the event source's filter and the table's attribute",
    isThere: async ({ aws }) =>
      (await aws(
        ...['dynamodb', 'describe-time-to-live', '--table-name', STACK],
        ...['--query', 'TimeToLiveDescription.TimeToLiveStatus'],
      )) === 'ENABLED',
  },
  {
    what: 'point-in-time recovery',
    shows: 'the table that the stack made has none',
    provenBy:
      "the stack's tests check that it is on; restoring as the guide says is tried on what the stand-in keeps",
    isThere: async ({ aws }) =>
      (await aws(
        ...['dynamodb', 'describe-continuous-backups', '--table-name', STACK],
        ...[
          '--query',
          'ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus',
        ],
      )) === 'ENABLED',
  },
  {
    what: '`start-message-move-task`',
    shows: 'it is no action that it knows',
    provenBy:
      '`dead-letters redrive --queue` by unit tests; the suite redrives letter by letter (`redrive ID`)',
    isThere: ({ aws }) => {
      const arn = `arn:aws:sqs:us-east-1:000000000000:${STACK}-evictions-due`;
      return granted(
        aws('sqs', 'start-message-move-task', '--source-arn', `${arn}-dlq`, '--destination-arn', arn),
      );
    },
  },
  {
    what: 'recursive loops by way of queues: what tells of the chain that a message belongs to',
    shows: 'a message sent in a batch arrives without its trace header',
    provenBy:
      'the suite passes chains on and counts them in place of it, and drops what Lambda would drop (`test/deployed/rig/loops`)',
    isThere: async ({ aws }) => {
      const url = await aws('sqs', 'create-queue', '--queue-name', 'probed', '--query', 'QueueUrl');
      const header = { DataType: 'String', StringValue: 'Root=1-00000000-000000000000000000000000' };
      const entry = { Id: '1', MessageBody: '1', MessageSystemAttributes: { AWSTraceHeader: header } };
      await aws('sqs', 'send-message-batch', '--queue-url', url, '--entries', JSON.stringify([entry]));
      const received = await aws(
        ...[
          'sqs',
          'receive-message',
          '--queue-url',
          url,
          '--message-system-attribute-names',
          'AWSTraceHeader',
        ],
        ...['--query', 'Messages[0].Attributes.AWSTraceHeader'],
      );
      await aws('sqs', 'delete-queue', '--queue-url', url);
      return received === header.StringValue;
    },
  },
  {
    what: 'containers: the relays of the service on ECS',
    shows: 'its tasks write no log',
    provenBy:
      "the suite builds the image's stages without Docker, and starts relays by image and task definition: command, environment, user, nothing to be written to, health check",
    isThere: async ({ aws }) =>
      (await aws(
        ...['logs', 'describe-log-streams', '--log-group-name', `/ecs/${STACK}-relay`],
        ...['--query', 'length(logStreams)'],
      )) !== '0',
  },
  {
    what: 'metrics from the lines of logs, and so our alarms and the dashboard',
    shows: '`heartbeat` has run, and the namespace is empty',
    provenBy:
      "unit tests of the lines, to the letter of the embedded metric format; the stack's tests, which compare the metrics and dimensions of alarms and dashboard with what the code writes and with a list of what AWS writes",
    isThere: async ({ aws, stage }) => {
      await stage.raw.invoke(stage.deployment.functionName('heartbeat'), {});
      return (
        (await aws('cloudwatch', 'list-metrics', '--namespace', STACK, '--query', 'length(Metrics)')) !== '0'
      );
    },
  },
  {
    what: 'IAM',
    shows: 'a user without any right lists the queues',
    provenBy:
      "the template's policies are evaluated against the calls that the code makes, by the stack's tests, and each statement is in their snapshot",
    isThere: async ({ aws, awsAs }) => {
      const user = ['--user-name', 'nobody'];
      await aws('iam', 'create-user', ...user);
      const key = await aws(
        'iam',
        'create-access-key',
        ...user,
        '--query',
        'AccessKey.[AccessKeyId,SecretAccessKey]',
      );
      const [id = '', secret = ''] = key.split('\t');
      try {
        return !(await granted(awsAs({ id, secret }, 'sqs', 'list-queues')));
      } finally {
        await aws('iam', 'delete-access-key', ...user, '--access-key-id', id);
        await aws('iam', 'delete-user', ...user);
      }
    },
  },
  {
    what: 'API servers of EKS, and the tokens that they take',
    shows: 'what `describe-cluster` names does not answer',
    provenBy: 'unit tests, to the byte of the presigned request',
    isThere: async ({ aws }) => {
      const name = ['--name', 'probed'];
      const role = ['--role-arn', 'arn:aws:iam::000000000000:role/eks'];
      await aws(
        'eks',
        'create-cluster',
        ...name,
        ...role,
        '--resources-vpc-config',
        'subnetIds=subnet-1,subnet-2',
      );
      const endpoint = await aws('eks', 'describe-cluster', ...name, '--query', 'cluster.endpoint');
      await aws('eks', 'delete-cluster', ...name);
      return answers(`${endpoint}/version`);
    },
  },
];

const granted = (answer: Promise<unknown>): Promise<boolean> =>
  answer.then(
    () => true,
    () => false,
  );

const answers = (url: string): Promise<boolean> =>
  URL.canParse(url)
    ? granted(fetch(url, { signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) }))
    : Promise.resolve(false);

/** What the stand-in of a stage does not do, as a table of Markdown; each is asked for. */
export async function shortfallTable(stage: DeployedStage): Promise<string> {
  const env = stage.guideEnvironment;
  // The AWS CLI looks for SQS elsewhere, whatever the environment says.
  const common = ['--output', 'text', '--endpoint-url', stage.account.url];
  const cli = async (as: NodeJS.ProcessEnv, args: readonly string[]) =>
    (
      await run('aws', [...args, ...common], { env: { ...env, ...as }, withinMs: AWS_WITHIN_MS })
    ).stdout.trim();
  const ask: Ask = {
    stage,
    aws: (...args) => cli({}, args),
    awsAs: ({ id, secret }, ...args) => cli({ AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret }, args),
  };
  const rows: string[] = [];
  for (const { what, shows, provenBy, isThere } of FEATURES) {
    if (!(await isThere(ask))) rows.push(`| ${what} | ${shows} | ${provenBy} |`);
  }
  return ['| not emulated | which shows in that | proven by |', '|---|---|---|', ...rows].join('\n');
}
