import { join } from 'node:path';
import { AssetHashType, DockerImage, Duration, RemovalPolicy, Validations } from 'aws-cdk-lib';
import { Grant, type IPrincipal, ManagedPolicy, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Architecture, Code, Function as LambdaFunction, Runtime, Tracing } from 'aws-cdk-lib/aws-lambda';
import { LogGroup, type RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { BUNDLE_FILE, bundleFunction, type FunctionName, PROJECT_DIR, roomOf } from './bundle.ts';
import type { Grantee } from './grantee.ts';
import type { Network } from './network.ts';

/** Enough that TLS and parsing are not starved: a function's share of a processor grows with its memory. */
const MEMORY_MIB = 512;

/** AWS's own policy for functions in a VPC. */
const NETWORK_POLICY = 'service-role/AWSLambdaENIManagementAccess';

export interface ServiceFunctionProps {
  readonly name: FunctionName;
  readonly description: string;
  readonly prefix: string;
  readonly timeoutSeconds: number;
  readonly logRetention: RetentionDays;
  /** Whether X-Ray shows each invocation that it samples: when its message waited, began, ended, failed. */
  readonly tracing: boolean;
  /** Absent: in no VPC. */
  readonly network?: Network;
}

/** One of our functions: its bundle, its role without any right but to write its log, and its log. */
export class ServiceFunction extends Construct implements Grantee {
  readonly name: FunctionName;
  readonly lambda: LambdaFunction;
  readonly grantPrincipal: IPrincipal;

  constructor(scope: Construct, id: string, props: ServiceFunctionProps) {
    super(scope, id);
    const { name, description, prefix, timeoutSeconds, logRetention, tracing, network } = props;
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
    if (network) {
      role.addManagedPolicy(ManagedPolicy.fromAwsManagedPolicyName(NETWORK_POLICY));
      Validations.of(role).acknowledge({
        id: `AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/${NETWORK_POLICY}]`,
        reason:
          'What Lambda itself needs to put a function into a VPC; its network interfaces have no names before they are made.',
      });
    }
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

  /** Lets somebody at a terminal ask it something. */
  bindInvoke(grantee: Grantee): void {
    Grant.addToPrincipal({
      grantee,
      actions: ['lambda:InvokeFunction'],
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
