import { Stack, Token, Validations } from 'aws-cdk-lib';
import { Grant, type IGrantable } from 'aws-cdk-lib/aws-iam';
import type { IConstruct } from 'constructs';
import type { endpointVariables, installationVariables, ValuesOf } from '#shared/aws/environment.ts';
import { defined } from '#shared/defined.ts';
import type { Config } from './config.ts';

/**
 * A construct that runs our code. Code that grants it access also sets the variables that name the target, so that
 * permission and configuration stay consistent.
 */
export interface Grantee extends IGrantable, IConstruct {
  setEnvironment(values: Readonly<Record<string, string>>): void;
}

/** Sets the variable by which our code uses LocalStack in place of AWS, if configured. */
export function setEndpoint(
  grantee: Pick<Grantee, 'setEnvironment'>,
  { endpoint }: Pick<Config, 'endpoint'>,
): void {
  if (endpoint === 'localstack')
    grantee.setEnvironment({ ENDPOINT: endpoint } satisfies ValuesOf<typeof endpointVariables>);
}

/** Sets the installation's name, by which other installations that share a cluster know it. */
export function setInstallation(grantee: Grantee, { name }: Pick<Config, 'name'>): void {
  const { account, region } = Stack.of(grantee);
  grantee.setEnvironment({
    INSTALLATION_NAME: `${name}.${region}.${account}`,
  } satisfies ValuesOf<typeof installationVariables>);
}

export type Conditions = Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>;

/** Grants actions on resources. See also {@link grantWildcard}. */
export function grant(
  grantee: IGrantable,
  actions: readonly string[],
  resources: readonly string[],
  conditions?: Conditions,
): void {
  const allowed = { actions: [...actions], resourceArns: [...resources], ...defined({ conditions }) };
  Grant.addToPrincipal({ grantee, ...allowed });
}

export interface WildcardGrant {
  readonly action: string;
  /** ARNs, at least some of them with a wildcard. */
  readonly resources: readonly string[];
  readonly conditions?: Conditions;
  /** The reason why nothing narrower works. */
  readonly reason: string;
}

/** Grants a permission that needs a wildcard, and records the reason in the place where cdk-nag looks for it. */
export function grantWildcard(
  grantee: IGrantable & IConstruct,
  { action, resources, conditions, reason }: WildcardGrant,
): void {
  grant(grantee, [action], resources, conditions);
  for (const resource of resources.filter((arn) => arn.includes('*'))) {
    Validations.of(grantee).acknowledge({
      id: `AwsSolutions-IAM5[Resource::${asPrinted(resource, Stack.of(grantee))}]`,
      reason,
    });
  }
}

/** Returns an ARN as printed by cdk-nag, with angle brackets around values that CloudFormation fills in. */
function asPrinted(arn: string, { partition, region, account }: Stack): string {
  const filledIn = { '<AWS::Partition>': partition, '<AWS::Region>': region, '<AWS::AccountId>': account };
  return Object.entries(filledIn)
    .filter(([, value]) => Token.isUnresolved(value))
    .reduce((printed, [name, value]) => printed.replace(value, name), arn);
}
