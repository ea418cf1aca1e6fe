import { Stack } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/**
 * Names like those of roles, managed policies, or dashboards are shared by an account's regions. With the region, a stack of the same
 * name can exist in each.
 */
export function accountWideName(scope: IConstruct, name: string): string {
  return `${name}-${Stack.of(scope).region}`;
}
