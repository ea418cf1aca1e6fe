import { Arn, ArnFormat, Stack } from 'aws-cdk-lib';
import { Grant } from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import type { noticeVariables, ValuesOf } from '#shared/aws/environment.ts';
import type { Config } from './config.ts';
import type { Grantee } from './grantee.ts';

/** The event bus that is told what becomes of evictions, if one is named. It is not ours: nothing is made here. */
export class Notices extends Construct {
  readonly #busArn: string | undefined;

  constructor(scope: Construct, id: string, { eventBus }: Pick<Config, 'eventBus'>) {
    super(scope, id);
    this.#busArn =
      eventBus === undefined || eventBus.startsWith('arn:')
        ? eventBus
        : Arn.format(
            {
              service: 'events',
              resource: 'event-bus',
              resourceName: eventBus,
              arnFormat: ArnFormat.SLASH_RESOURCE_NAME,
            },
            Stack.of(this),
          );
  }

  /** Lets a function tell the bus; nothing, if none is named. */
  bind(grantee: Grantee): void {
    if (this.#busArn === undefined) return;
    grantee.setEnvironment({ EVENT_BUS: this.#busArn } satisfies ValuesOf<typeof noticeVariables>);
    Grant.addToPrincipal({ grantee, actions: ['events:PutEvents'], resourceArns: [this.#busArn] });
  }
}
