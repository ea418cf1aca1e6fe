import { Aws, CfnCondition, Fn } from 'aws-cdk-lib';
import type { Construct } from 'constructs';

const COMMERCIAL = 'console.aws.amazon.com';
/** Of the partitions that have a console of their own. */
const HOSTS = {
  'aws-cn': 'console.amazonaws.cn',
  'aws-us-gov': 'console.amazonaws-us-gov.com',
  'aws-eusc': 'console.amazonaws-eusc.eu',
} as const;

/** The host of AWS's console, less the region before it, for the partition that the stack is deployed into. */
export function consoleHost(scope: Construct): string {
  return Object.entries(HOSTS).reduce<string>((otherwise, [partition, host]) => {
    const isHere = new CfnCondition(scope, `In-${partition}`, {
      expression: Fn.conditionEquals(Aws.PARTITION, partition),
    });
    return Fn.conditionIf(isHere.logicalId, host, otherwise).toString();
  }, COMMERCIAL);
}
