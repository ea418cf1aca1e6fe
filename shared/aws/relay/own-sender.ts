import { GetCallerIdentityCommand, type STSClient } from '@aws-sdk/client-sts';
import { EnvironmentError } from '#shared/aws/environment.ts';
import { senderOf } from '#shared/aws/lease-senders.ts';
import { type Endpoint, LOCALSTACK_ACCOUNT, notForAccount } from '#shared/aws/localstack.ts';
import type { Log } from '#shared/telemetry/log.ts';

/**
 * Returns the sender that queues report for messages of this process. STS answers every caller, regardless of
 * permissions. `undefined`, with a warning in the log: STS did not answer. Messages are then accepted from every
 * sender. On LocalStack, the sender of every message is the account. Rejects with `EnvironmentError` when `endpoint`
 * is LocalStack but the account is another.
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
