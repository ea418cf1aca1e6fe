import { Stack } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import type { noticeVariables, ValuesOf } from '#shared/aws/environment.ts';
import type { Config } from './config.ts';
import { type Grantee, grant } from './grantee.ts';

/** The event bus for results of evictions, if configured: the user's, so this construct creates no resource. */
export class Notices extends Construct {
  readonly #busArn: string | undefined;

  constructor(scope: Construct, id: string, { eventBus }: Pick<Config, 'eventBus'>) {
    super(scope, id);
    this.#busArn =
      eventBus === undefined || eventBus.startsWith('arn:')
        ? eventBus
        : Stack.of(this).formatArn({ service: 'events', resource: 'event-bus', resourceName: eventBus });
  }

  /** Allows a function to send to the bus; does nothing if none is configured. */
  bind(grantee: Grantee): void {
    if (this.#busArn === undefined) return;
    grantee.setEnvironment({ EVENT_BUS: this.#busArn } satisfies ValuesOf<typeof noticeVariables>);
    grant(grantee, ['events:PutEvents'], [this.#busArn]);
  }
}
