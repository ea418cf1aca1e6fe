import { GetCallerIdentityCommand, type STSClient } from '@aws-sdk/client-sts';
import { senderOf } from '#shared/clusters/lease-senders.ts';
import type { Log } from '#shared/telemetry/log.ts';

/**
 * How queues name this process to those who receive from them. STS tells everybody, whatever his rights. `undefined`, with
 * a word in the log: it does not answer; what is sent is taken then from whoever sends it.
 */
export async function ownSender(client: Pick<STSClient, 'send'>, log: Log): Promise<string | undefined> {
  try {
    const { UserId } = await client.send(new GetCallerIdentityCommand());
    if (UserId) return senderOf(UserId);
    throw new Error('STS names nobody');
  } catch (error) {
    log.warn('relay.sender-unknown', { reason: error });
    return undefined;
  }
}
