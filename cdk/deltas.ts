import { Construct } from 'constructs';
import type { deltaQueueVariables, ValuesOf } from '#shared/aws/environment.ts';
import { QUEUES } from '#shared/aws/queue-set.ts';
import type { Grantee } from './grantee.ts';
import { ServiceQueue } from './service-queue.ts';

/** The queues from the relay to the delta functions. A node's deltas stay in order, and nodes do not wait for each other. */
export class Deltas extends Construct {
  readonly nodes: ServiceQueue;
  readonly pods: ServiceQueue;

  constructor(scope: Construct, id: string, { prefix }: { readonly prefix: string }) {
    super(scope, id);
    this.nodes = new ServiceQueue(this, 'Nodes', { spec: QUEUES.nodeDeltas, prefix });
    this.pods = new ServiceQueue(this, 'Pods', { spec: QUEUES.podDeltas, prefix });
  }

  bindSend(grantee: Grantee): void {
    grantee.setEnvironment({
      NODE_DELTAS_URL: this.nodes.queue.queueUrl,
      POD_DELTAS_URL: this.pods.queue.queueUrl,
    } satisfies ValuesOf<typeof deltaQueueVariables>);
    this.nodes.grantSend(grantee);
    this.pods.grantSend(grantee);
  }
}
