import { Duration, RemovalPolicy, Size, Stack, Validations } from 'aws-cdk-lib';
import { Repository } from 'aws-cdk-lib/aws-ecr';
import { Platform } from 'aws-cdk-lib/aws-ecr-assets';
import {
  AwsLogDriverMode,
  Cluster,
  type ContainerDefinition,
  ContainerImage,
  ContainerInsights,
  CpuArchitecture,
  FargateService,
  FargateTaskDefinition,
  type ICluster,
  LogDriver,
  OperatingSystemFamily,
  PropagatedTagSource,
} from 'aws-cdk-lib/aws-ecs';
import { type IPrincipal, type IRole, ManagedPolicy, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import { Construct, type IDependable } from 'constructs';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import {
  type followedVariables,
  type metricVariables,
  NODES_PER_MIB,
  PROBE_PORT,
  type ValuesOf,
} from '#shared/aws/environment.ts';
import { defined } from '#shared/defined.ts';
import { accountWideName } from './account-wide-name.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { type Config, ConfigError, fargateCpu, type OwnRelay } from './config.ts';
import { dataKeyOf } from './data-key.ts';
import type { Deltas } from './deltas.ts';
import { type Grantee, setEndpoint, setInstallation } from './grantee.ts';
import type { Network } from './network.ts';
import { LOG_RETENTION } from './service-function.ts';
import type { State } from './state.ts';

export interface RelayProps {
  readonly config: Config;
  readonly state: State;
  readonly deltas: Deltas;
  readonly clusters: ClusterAccess;
}

/** The buffer for log lines that CloudWatch Logs has not accepted yet: some 40,000. Further lines are lost. */
const LOG_BUFFER = Size.mebibytes(10);

/** IAM allows 6,144 characters for a managed policy. Some names are longer than their stand-ins before the deployment. */
const MAX_POLICY_CHARACTERS = 6_000;

/** An image in a private repository of ECR: account, region, repository, and the image's digest. */
const ECR_IMAGE = /^(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.[a-z.]+\/([^@]+)@(sha256:.+)$/;

/** Gives a relay its permissions and variables, wherever it runs: for all clusters, or for the clusters of `own`. */
function bindRelay(relay: Grantee, { config, state, deltas, clusters }: RelayProps, own?: OwnRelay): void {
  state.bindLeases(relay, own?.clusters);
  deltas.bindSend(relay);
  clusters.bind(relay, 'relay', {
    ...(own?.clusterRoles && { roles: own.clusterRoles }),
    ...(own?.kubeconfigSecrets && { secrets: own.kubeconfigSecrets }),
  });
  setEndpoint(relay, config);
  if (own) {
    relay.setEnvironment({ CLUSTERS: own.clusters.join(',') } satisfies ValuesOf<typeof followedVariables>);
  }
  relay.setEnvironment({ METRIC_NAMESPACE: config.name } satisfies ValuesOf<typeof metricVariables>);
  setInstallation(relay, config);
}

/** The relays that the stack runs. */
export class FargateRelay extends Construct implements Grantee {
  readonly grantPrincipal: IRole;
  readonly logGroup: LogGroup;
  readonly service: FargateService;
  readonly #container: ContainerDefinition;

  constructor(scope: Construct, id: string, props: RelayProps & { readonly network: Network }) {
    super(scope, id);
    const { config, network } = props;
    const name = `${config.name}-relay`;
    this.logGroup = new LogGroup(this, 'Log', {
      logGroupName: `/ecs/${name}`,
      retention: LOG_RETENTION,
      ...defined({ encryptionKey: dataKeyOf(this) }),
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.grantPrincipal = new Role(this, 'Role', {
      roleName: accountWideName(this, name),
      assumedBy: new ServicePrincipal('ecs-tasks.amazonaws.com'),
    });
    const task = new FargateTaskDefinition(this, 'Task', {
      family: name,
      taskRole: this.grantPrincipal,
      cpu: fargateCpu(config.relayMemoryMiB) ?? 0,
      memoryLimitMiB: config.relayMemoryMiB,
      runtimePlatform: {
        cpuArchitecture: CpuArchitecture.ARM64,
        operatingSystemFamily: OperatingSystemFamily.LINUX,
      },
    });
    this.#container = task.addContainer('Relay', {
      containerName: 'relay',
      image: this.#image(config.relayImage),
      logging: LogDriver.awsLogs({
        logGroup: this.logGroup,
        streamPrefix: 'relay',
        // Otherwise a write to standard output would wait for CloudWatch Logs, and delay every eviction.
        mode: AwsLogDriverMode.NON_BLOCKING,
        maxBufferSize: LOG_BUFFER,
      }),
      readonlyRootFilesystem: true,
      // The image sets the same user; repeated here to make the user visible to readers.
      user: 'node',
      healthCheck: {
        command: ['CMD', 'bash', '-c', HEALTH_CHECK],
        interval: Duration.seconds(10),
        timeout: Duration.seconds(5),
        retries: 3,
        startPeriod: Duration.seconds(30),
      },
    });
    bindRelay(this, props);
    this.setEnvironment({ NODE_CAPACITY: `${NODES_PER_MIB * config.relayMemoryMiB}` });
    const cluster = new Cluster(this, 'Cluster', {
      clusterName: name,
      vpc: network.vpc,
      containerInsightsV2: ContainerInsights.DISABLED,
    });
    Validations.of(cluster).acknowledge({
      id: 'AwsSolutions-ECS4',
      reason: "The relay's metrics and log show more than Container Insights, which is billed by metric.",
    });
    Validations.of(task).acknowledge(
      {
        id: 'AwsSolutions-ECS2',
        reason: "The variables are names and URLs of the stack's resources; none is a secret.",
      },
      {
        id: 'AwsSolutions-IAM5[Resource::*]',
        reason: 'ecr:GetAuthorizationToken, to pull the image, knows no resources.',
      },
    );
    this.service = new FargateService(this, 'Service', {
      serviceName: name,
      // The CDK is not written for exactOptionalPropertyTypes: an optional property of the interface is undefined here.
      cluster: cluster as ICluster,
      taskDefinition: task,
      desiredCount: config.relayCount,
      // A new relay starts before an old one stops, and takes over its leases meanwhile.
      minHealthyPercent: 100,
      maxHealthyPercent: 200,
      circuitBreaker: { enable: true, rollback: true },
      vpcSubnets: { subnets: network.subnets },
      securityGroups: [network.securityGroup],
      assignPublicIp: network.isPublic,
      propagateTags: PropagatedTagSource.SERVICE,
      enableECSManagedTags: true,
    });
    // Tasks that stop need network access: without it they neither drain nor end, and the stack cannot be destroyed. The
    // execution role needs the permission to pull their image.
    this.runWithin(network, task.obtainExecutionRole());
  }

  /** By its digest; `undefined`: the image is built here. A task may pull from ECR in any account. */
  #image(released: string | undefined): ContainerImage {
    if (released === undefined)
      return ContainerImage.fromAsset(PROJECT_DIR, { platform: Platform.LINUX_ARM64 });
    const [, account, region, repository = '', digest] = ECR_IMAGE.exec(released) ?? [];
    if (digest === undefined) return ContainerImage.fromRegistry(released);
    const repositoryArn = Stack.of(this).formatArn({
      service: 'ecr',
      resource: 'repository',
      resourceName: repository,
      ...(account && { account }),
      ...(region && { region }),
    });
    const attributes = { repositoryArn, repositoryName: repository };
    return ContainerImage.fromEcrRepository(
      Repository.fromRepositoryAttributes(this, 'Repository', attributes),
      digest,
    );
  }

  /** Starts or replaces the relays after `others` exist, and stops them before `others` are deleted. */
  runWithin(...others: readonly IDependable[]): void {
    this.service.node.addDependency(...others);
  }

  setEnvironment(values: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(values)) this.#container.addEnvironment(name, value);
  }
}

/**
 * Requests `/healthz` by bash, which Debian always has; the image has neither curl nor wget. A second Node.js would
 * take 80 ms of the processor and 60 MB of memory every ten seconds.
 */
const HEALTH_CHECK = [
  `exec 3<>/dev/tcp/127.0.0.1/${PROBE_PORT}`,
  String.raw`printf 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' >&3`,
  'read -r -t 3 _ status _ <&3',
  '[ "$status" = 200 ]',
].join(' && ');

/** Relays that the user runs: a policy for their role, and their environment variables. */
export class ExternalRelay extends Construct implements Grantee {
  readonly policy: ManagedPolicy;
  readonly grantPrincipal: IPrincipal;
  readonly environment: Record<string, string> = {};

  /** `name`: one of `taintward:relays`; absent: for relays that follow all clusters. */
  constructor(scope: Construct, id: string, { name, ...props }: RelayProps & { readonly name?: string }) {
    super(scope, id);
    const { config } = props;
    this.policy = new ManagedPolicy(this, 'Policy', {
      managedPolicyName: accountWideName(
        this,
        [config.name, 'relay', ...(name === undefined ? [] : [name])].join('-'),
      ),
      description: 'What a relay of Taintward may do. Attach it to the role or user that yours runs as.',
    });
    this.grantPrincipal = this.policy.grantPrincipal;
    bindRelay(this, props, name === undefined ? undefined : config.relays?.[name]);
    if (JSON.stringify(this.policy.document).length > MAX_POLICY_CHARACTERS)
      throw new ConfigError(
        `The policy of relays${name === undefined ? '' : ` ${name}`} is too long for IAM. Combine clusters, secrets, and roles (taintward:relays, taintward:kubeconfigSecrets, taintward:clusterRoles) to names that end with *.`,
      );
  }

  setEnvironment(values: Readonly<Record<string, string>>): void {
    Object.assign(this.environment, values);
  }
}
