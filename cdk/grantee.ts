import { Stack, Token, Validations } from 'aws-cdk-lib';
import { Grant, type IGrantable } from 'aws-cdk-lib/aws-iam';
import type { IConstruct } from 'constructs';
import type { endpointVariables, ValuesOf } from '#shared/aws/environment.ts';
import type { Config } from './config.ts';

/**
 * What runs our code. A construct that gives it access sets the environment variables that say where to in the same
 * place, so that permission and configuration cannot drift apart.
 */
export interface Grantee extends IGrantable, IConstruct {
  setEnvironment(values: Readonly<Record<string, string>>): void;
}

/** Says to what runs our code that LocalStack is in place of AWS, where it is. */
export function setEndpoint(
  grantee: Pick<Grantee, 'setEnvironment'>,
  { endpoint }: Pick<Config, 'endpoint'>,
): void {
  if (endpoint === 'localstack')
    grantee.setEnvironment({ ENDPOINT: endpoint } satisfies ValuesOf<typeof endpointVariables>);
}

export interface WildcardGrant {
  readonly action: string;
  /** ARNs of which at least some hold a wildcard. */
  readonly resources: readonly string[];
  readonly conditions?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Why nothing narrower will do. */
  readonly reason: string;
}

/** Grants what cannot be granted without a wildcard, and puts the reason down where cdk-nag looks for it. */
export function grantWildcard(
  grantee: IGrantable & IConstruct,
  { action, resources, conditions, reason }: WildcardGrant,
): void {
  Grant.addToPrincipal({
    grantee,
    actions: [action],
    resourceArns: [...resources],
    ...(conditions ? { conditions } : {}),
  });
  for (const resource of resources.filter((arn) => arn.includes('*'))) {
    Validations.of(grantee).acknowledge({
      id: `AwsSolutions-IAM5[Resource::${asPrinted(resource, Stack.of(grantee))}]`,
      reason,
    });
  }
}

/** An ARN as cdk-nag prints it: what CloudFormation fills in stands in angle brackets. */
function asPrinted(arn: string, { partition, region, account }: Stack): string {
  const filledIn = { '<AWS::Partition>': partition, '<AWS::Region>': region, '<AWS::AccountId>': account };
  return Object.entries(filledIn)
    .filter(([, value]) => Token.isUnresolved(value))
    .reduce((printed, [name, value]) => printed.replace(value, name), arn);
}
