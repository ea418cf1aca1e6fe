import { Stack } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/**
 * The name of something that has one namespace in all regions of an account, as managed policies and dashboards do: with the
 * region, so that a stack of the same name can stand in another.
 */
export function accountWideName(scope: IConstruct, name: string): string {
  return `${name}-${Stack.of(scope).region}`;
}
