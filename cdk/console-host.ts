import { Aws, CfnCondition, Fn } from 'aws-cdk-lib';
import type { Construct } from 'constructs';

const COMMERCIAL = 'console.aws.amazon.com';
/** The hosts of the partitions that have their own AWS console. */
const HOSTS = {
  'aws-cn': 'console.amazonaws.cn',
  'aws-us-gov': 'console.amazonaws-us-gov.com',
  'aws-eusc': 'console.amazonaws-eusc.eu',
} as const;

/** Returns the host of the AWS console, without the region before it, for the partition that the stack is deployed into. */
export function consoleHost(scope: Construct): string {
  return Object.entries(HOSTS).reduce<string>((otherwise, [partition, host]) => {
    const isHere = new CfnCondition(scope, `In-${partition}`, {
      expression: Fn.conditionEquals(Aws.PARTITION, partition),
    });
    return Fn.conditionIf(isHere.logicalId, host, otherwise).toString();
  }, COMMERCIAL);
}
