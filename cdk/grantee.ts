import type { IGrantable } from 'aws-cdk-lib/aws-iam';
import type { IConstruct } from 'constructs';

/**
 * What runs our code. A construct that gives it access sets the environment variables that say where to in the same
 * place, so that permission and configuration cannot drift apart.
 */
export interface Grantee extends IGrantable, IConstruct {
  setEnvironment(values: Readonly<Record<string, string>>): void;
}
