import { Stack } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/**
 * Returns a name for a resource whose names are shared by all regions of an account, for example a managed policy or dashboard.
 * The name contains the region, so that a stack of the same name can exist in another region.
 */
export function accountWideName(scope: IConstruct, name: string): string {
  return `${name}-${Stack.of(scope).region}`;
}
