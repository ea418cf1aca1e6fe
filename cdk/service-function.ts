import { join } from 'node:path';
import {
  ArnFormat,
  AssetHashType,
  DockerImage,
  Duration,
  RemovalPolicy,
  Stack,
  Validations,
} from 'aws-cdk-lib';
import { Effect, type IPrincipal, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import {
  Architecture,
  Code,
  Function as LambdaFunction,
  RecursiveLoop,
  Runtime,
} from 'aws-cdk-lib/aws-lambda';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { BUNDLE_FILE, bundleFunction, type FunctionName, PROJECT_DIR, roomOf } from '#deploy/build/bundle.ts';
import { defined } from '#shared/defined.ts';
import { accountWideName } from './account-wide-name.ts';
import { dataKeyOf } from './data-key.ts';
import { type Grantee, grant } from './grantee.ts';
import type { Network } from './network.ts';

/** Enough memory for TLS and parsing: a function's share of a processor grows with its memory. */
const MEMORY_MIB = 512;

/**
 * The permissions that Lambda needs in a VPC with the function's role. Source: AWS, "Giving Lambda functions access to resources
 * in an Amazon VPC", Required IAM permissions. The resources are not known beforehand; shared subnets even belong to another
 * account.
 */
const NETWORK_ACTIONS = [
  ...['CreateNetworkInterface', 'DescribeNetworkInterfaces', 'DescribeSubnets', 'DeleteNetworkInterface'],
  ...['AssignPrivateIpAddresses', 'UnassignPrivateIpAddresses'],
].map((action) => `ec2:${action}`);

export interface ServiceFunctionProps {
  readonly name: FunctionName;
  readonly description: string;
  readonly prefix: string;
  readonly timeoutSeconds: number;
  /** Absent: in no VPC. */
  readonly network?: Network;
  /**
   * The function sends messages back to itself while evictions are retried. Otherwise Lambda stops the 17th invocation
   * of such a chain as a mistake, and the message is a dead letter.
   */
  readonly wakesItself?: boolean;
}

/** Retention of the logs of functions and relays. */
export const LOG_RETENTION = RetentionDays.ONE_MONTH;

/** One of our functions: its bundle, its log, and a role that may only write the log. */
export class ServiceFunction extends Construct implements Grantee {
  readonly name: FunctionName;
  readonly lambda: LambdaFunction;
  readonly grantPrincipal: IPrincipal;

  constructor(scope: Construct, id: string, props: ServiceFunctionProps) {
    super(scope, id);
    const { name, description, prefix, timeoutSeconds, network, wakesItself } = props;
    this.name = name;
    const functionName = `${prefix}-${name}`;
    const logGroup = new LogGroup(this, 'Log', {
      logGroupName: `/aws/lambda/${functionName}`,
      retention: LOG_RETENTION,
      ...defined({ encryptionKey: dataKeyOf(this) }),
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const role = new Role(this, 'Role', {
      roleName: accountWideName(this, functionName),
      description: `What ${functionName} may do.`,
      assumedBy: new ServicePrincipal('lambda.amazonaws.com'),
    });
    if (network) this.#letLambdaConnect(role, functionName);
    logGroup.grantWrite(role);
    this.lambda = new LambdaFunction(this, 'Function', {
      functionName,
      description,
      code: bundledCode(name),
      handler: BUNDLE_FILE.replace('.mjs', '.handler'),
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      memorySize: MEMORY_MIB,
      timeout: Duration.seconds(timeoutSeconds),
      role,
      logGroup,
      ...(wakesItself ? { recursiveLoop: RecursiveLoop.ALLOW } : {}),
      ...(network
        ? {
            vpc: network.vpc,
            vpcSubnets: { subnets: network.subnets },
            securityGroups: [network.securityGroup],
          }
        : {}),
    });
    this.grantPrincipal = this.lambda.grantPrincipal;
  }

  /** Lambda may put the function into a VPC; the code's own calls are denied by the function's ARN. */
  #letLambdaConnect(role: Role, functionName: string): void {
    role.addToPolicy(new PolicyStatement({ actions: NETWORK_ACTIONS, resources: ['*'] }));
    role.addToPolicy(
      new PolicyStatement({
        effect: Effect.DENY,
        actions: [...NETWORK_ACTIONS, 'ec2:DetachNetworkInterface'],
        resources: ['*'],
        // The ARN is built from the name, because the function waits for this policy.
        conditions: {
          ArnEquals: {
            'lambda:SourceFunctionArn': Stack.of(this).formatArn({
              service: 'lambda',
              resource: 'function',
              resourceName: functionName,
              arnFormat: ArnFormat.COLON_RESOURCE_NAME,
            }),
          },
        },
      }),
    );
    Validations.of(role).acknowledge({
      id: 'AwsSolutions-IAM5[Resource::*]',
      reason:
        'What Lambda itself needs to put a function into a VPC; its network interfaces have no names before they are made. The code may not.',
    });
  }

  bindInvoke(grantee: Grantee): void {
    grant(grantee, ['lambda:InvokeFunction'], [this.lambda.functionArn]);
  }

  setEnvironment(values: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(values)) this.lambda.addEnvironment(name, value);
  }
}

/** The asset is named after the output, so that only changed functions are deployed. */
function bundledCode(name: FunctionName): Code {
  // The path is the function's own folder and not the project's, because the CDK bundles only once for the same path and options.
  return Code.fromAsset(join(PROJECT_DIR, roomOf(name)), {
    assetHashType: AssetHashType.OUTPUT,
    bundling: {
      // The type requires an image; nothing is built in a container.
      image: DockerImage.fromRegistry('none'),
      local: {
        tryBundle(outputDir) {
          bundleFunction(name, outputDir);
          return true;
        },
      },
    },
  });
}
