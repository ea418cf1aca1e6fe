import { GetCallerIdentityCommand, type STSClient } from '@aws-sdk/client-sts';
import { EnvironmentError } from '#shared/aws/environment.ts';
import { senderOf } from '#shared/aws/lease-senders.ts';
import { type Endpoint, LOCALSTACK_ACCOUNT, notForAccount } from '#shared/aws/localstack.ts';
import type { Log } from '#shared/telemetry/log.ts';

/**
 * How queues name this process to those who receive from them. STS tells everybody, whatever his rights. `undefined`, with
 * a word in the log: it does not answer; what is sent is taken then from whoever sends it. On LocalStack that name is the account
 * of every sender; throws `EnvironmentError` where a process is told that it is there, and is in another account.
 */
export async function ownSender(
  client: Pick<STSClient, 'send'>,
  log: Log,
  endpoint?: Endpoint,
): Promise<string | undefined> {
  try {
    const { UserId, Account = '' } = await client.send(new GetCallerIdentityCommand());
    if (endpoint !== undefined && Account !== LOCALSTACK_ACCOUNT) {
      throw new EnvironmentError(
        `The environment variable ENDPOINT cannot be used (${notForAccount(Account)}): unset it.`,
      );
    }
    if (UserId) return endpoint === undefined ? senderOf(UserId) : Account;
    throw new Error('STS returned no user ID');
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    log.warn('relay.identity-unknown', { error });
    return undefined;
  }
}
