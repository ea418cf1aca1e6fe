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
import { Effect, Grant, type IPrincipal, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import {
  Architecture,
  Code,
  Function as LambdaFunction,
  RecursiveLoop,
  Runtime,
  Tracing,
} from 'aws-cdk-lib/aws-lambda';
import { LogGroup, type RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { BUNDLE_FILE, bundleFunction, type FunctionName, PROJECT_DIR, roomOf } from '#deploy/build/bundle.ts';
import type { Grantee } from './grantee.ts';
import type { Network } from './network.ts';

/** Enough that TLS and parsing are not starved: a function's share of a processor grows with its memory. */
const MEMORY_MIB = 512;

/**
 * What Lambda does in a VPC with the function's role, as AWS lists it ("Giving Lambda functions access to resources in an Amazon VPC",
 * Required IAM permissions). It knows no resources beforehand; subnets that are shared are even another account's.
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
  readonly logRetention: RetentionDays;
  /** Whether X-Ray shows each invocation that it samples: when its message waited, began, ended, failed. */
  readonly tracing: boolean;
  /** Invocations at a time that Lambda keeps for it, and that it never exceeds; absent: what other functions leave. */
  readonly reserved?: number;
  /** Absent: in no VPC. */
  readonly network?: Network;
  /**
   * Whether it sends messages that lead back to itself for as long as there is something to try. Lambda otherwise takes that for
   * a mistake: it stops the 17th invocation of a chain, and the message is lost but for its dead letter.
   */
  readonly wakesItself?: boolean;
}

/** One of our functions: its bundle, its role without any right but to write its log, and its log. */
export class ServiceFunction extends Construct implements Grantee {
  readonly name: FunctionName;
  readonly lambda: LambdaFunction;
  readonly grantPrincipal: IPrincipal;

  constructor(scope: Construct, id: string, props: ServiceFunctionProps) {
    super(scope, id);
    const {
      name,
      description,
      prefix,
      timeoutSeconds,
      logRetention,
      tracing,
      reserved,
      network,
      wakesItself,
    } = props;
    this.name = name;
    const functionName = `${prefix}-${name}`;
    const logGroup = new LogGroup(this, 'Log', {
      logGroupName: `/aws/lambda/${functionName}`,
      retention: logRetention,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const role = new Role(this, 'Role', {
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
      ...(tracing ? { tracing: Tracing.ACTIVE } : {}),
      ...(reserved === undefined ? {} : { reservedConcurrentExecutions: reserved }),
      ...(wakesItself ? { recursiveLoop: RecursiveLoop.ALLOW } : {}),
      ...(network
        ? {
            vpc: network.vpc,
            vpcSubnets: { subnets: network.subnets },
            securityGroups: [network.securityGroup],
          }
        : {}),
    });
    if (tracing) {
      Validations.of(role).acknowledge({
        id: 'AwsSolutions-IAM5[Resource::*]',
        reason: 'xray:PutTraceSegments and PutTelemetryRecords know no resources.',
      });
    }
    this.grantPrincipal = this.lambda.grantPrincipal;
  }

  /** Has Lambda put the function into a VPC, and its code do nothing with these rights: a call of the code's own names the function. */
  #letLambdaConnect(role: Role, functionName: string): void {
    role.addToPolicy(new PolicyStatement({ actions: NETWORK_ACTIONS, resources: ['*'] }));
    role.addToPolicy(
      new PolicyStatement({
        effect: Effect.DENY,
        actions: [...NETWORK_ACTIONS, 'ec2:DetachNetworkInterface'],
        resources: ['*'],
        // By its name: the function waits for this policy.
        conditions: {
          ArnEquals: {
            'lambda:SourceFunctionArn': Stack.of(this).formatArn({
              ...{ service: 'lambda', resource: 'function', resourceName: functionName },
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

  /** Lets somebody at a terminal ask it something. */
  bindInvoke(grantee: Grantee): void {
    Grant.addToPrincipal({
      grantee,
      actions: ['lambda:InvokeFunction'],
      resourceArns: [this.lambda.functionArn],
    });
  }

  /** Lets somebody see how many invocations are reserved for it. */
  bindReserved(grantee: Grantee): void {
    Grant.addToPrincipal({
      grantee,
      actions: ['lambda:GetFunctionConcurrency'],
      resourceArns: [this.lambda.functionArn],
    });
  }

  setEnvironment(values: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(values)) this.lambda.addEnvironment(name, value);
  }
}

/** Built by esbuild in this process; named after what comes out, so that only a changed function is deployed. */
function bundledCode(name: FunctionName): Code {
  // The function's own folder, not the project's: the CDK bundles once for all that have the same path and options.
  return Code.fromAsset(join(PROJECT_DIR, roomOf(name)), {
    assetHashType: AssetHashType.OUTPUT,
    bundling: {
      // Asked for by the type; nothing is built in a container.
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
