import { CfnOutput, Stack, type StackProps } from 'aws-cdk-lib';
import { StringParameter } from 'aws-cdk-lib/aws-ssm';
import type { Construct } from 'constructs';
import { defined } from '#shared/defined.ts';
import { Agents } from './agents.ts';
import { mailTopicName } from './alarm-topics.ts';
import { ClusterAccess } from './cluster-access.ts';
import type { Config } from './config.ts';
import { consoleHost } from './console-host.ts';
import { encryptData } from './data-key.ts';
import { Deltas } from './deltas.ts';
import { Functions } from './functions.ts';
import { Monitoring } from './monitoring.ts';
import { Network } from './network.ts';
import { Notices } from './notices.ts';
import { OperatorPermissions } from './operator-permissions.ts';
import { ExternalRelay, FargateRelay } from './relay.ts';
import { State } from './state.ts';
import { Timers } from './timers.ts';

/** The whole service, in the order in which data travels. */
export class TaintwardStack extends Stack {
  constructor(scope: Construct, id: string, { config, ...props }: StackProps & { readonly config: Config }) {
    super(scope, id, {
      description: 'Taintward: Kubernetes NoExecute taint eviction for a fleet',
      terminationProtection: config.retainTable,
      ...props,
    });
    encryptData(this, config);
    const prefix = config.name;
    const state = new State(this, 'State', {
      tableName: prefix,
      retain: config.retainTable,
      historyDays: config.historyDays,
    });
    const deltas = new Deltas(this, 'Deltas', { prefix });
    const timers = new Timers(this, 'Timers', { prefix });
    const agents = new Agents(this, 'Agents', { installation: config.name });
    const clusters = new ClusterAccess(this, 'Clusters', config);
    const shared = { config, state, deltas, timers, clusters };
    const usesNetwork = config.relay === 'fargate' || config.vpcId !== undefined || config.staticEgressIps;
    const network = usesNetwork ? new Network(this, 'Network', config) : undefined;
    const relay =
      network && config.relay === 'fargate'
        ? new FargateRelay(this, 'Relay', { ...shared, network })
        : undefined;
    // Clusters that admit only a network or certain addresses admit `evict` only from there.
    const closed = network?.isPublic === false ? network : undefined;
    const functions = new Functions(this, 'Functions', {
      ...shared,
      agents,
      notices: new Notices(this, 'Notices', config),
      ...defined({ network: closed }),
    });
    if (relay) {
      // Functions that read a new relay's messages are deployed before it, and ECS has time to create its service-linked role.
      relay.runWithin(...functions.all.map(({ lambda }) => lambda));
    } else if (config.relays) {
      for (const name of Object.keys(config.relays)) {
        const suffix = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
        this.#outputRelayCommand(new ExternalRelay(this, `Relay${suffix}`, { ...shared, name }), suffix);
      }
    } else {
      this.#outputRelayCommand(new ExternalRelay(this, 'Relay', shared));
    }
    clusters.publish(functions.evict);
    if (closed) this.#outputCallers(closed);
    new OperatorPermissions(this, 'OperatorRights', { prefix, state, deltas, timers, agents, functions });
    const { dashboard, recipients } = new Monitoring(this, 'Monitoring', {
      ...shared,
      functions,
      ...defined({ relay }),
    });
    // LocalStack has no AWS console.
    if (config.endpoint === 'aws')
      this.#output('Dashboard', 'Dashboard of the service.', this.#dashboardUrl(dashboard.name));
    this.#output('AlarmsTell', 'Recipients of alarms.', recipients);
    this.#output(
      'TableName',
      'Table of the service. Set TAINTWARD_TABLE to it for the command line.',
      state.table.tableName,
    );
    this.#share(config.name, {
      RelayRoleArn: relay?.grantPrincipal.roleArn,
      EvictRoleArn: functions.evict.lambda.role?.roleArn,
      TableArn: state.table.tableArn,
      NodeDeltasArn: deltas.nodes.queue.queueArn,
      NodeDeltasDeadLettersArn: deltas.nodes.deadLetters.queue.queueArn,
      PodDeltasArn: deltas.pods.queue.queueArn,
      PodDeltasDeadLettersArn: deltas.pods.deadLetters.queue.queueArn,
      EvictionsDueArn: timers.due.queue.queueArn,
      EvictionsDueDeadLettersArn: timers.due.deadLetters.queue.queueArn,
      ExpiryDeadLettersArn: functions.expiryDeadLetters.queue.queueArn,
      AlarmTopicArn:
        config.alarmEmail && this.formatArn({ service: 'sns', resource: mailTopicName(config.name) }),
    });
    this.#output(
      'NextStep',
      'Nothing is evicted before a cluster is registered.',
      'npx taintward clusters add --help',
    );
  }

  /** Outputs ARNs, and stores them in the Parameter Store of Systems Manager, for policies outside the stack. */
  #share(installation: string, arns: Readonly<Record<string, string | undefined>>): void {
    for (const [name, arn] of Object.entries(arns)) {
      if (arn === undefined) continue;
      this.#output(name, `Also the parameter /taintward/NAME/${name} of Systems Manager.`, arn);
      const parameterName = `/taintward/${installation}/${name}`;
      new StringParameter(this, `${name}Parameter`, { parameterName, stringValue: arn });
    }
  }

  #outputRelayCommand({ policy, environment }: ExternalRelay, suffix = ''): void {
    const variables = Object.entries({ AWS_REGION: this.region, ...environment });
    const command = [...variables.map(([name, value]) => `${name}=${value}`), 'npm run relay'].join(' ');
    this.#output(
      `RelayPolicy${suffix}`,
      'Attach it to the role or user that your relays run as.',
      policy.managedPolicyArn,
    );
    this.#output(
      `RelayCommand${suffix}`,
      'Start your relays with it; any number shares the clusters.',
      command,
    );
  }

  #outputCallers({ securityGroup, addresses }: Network): void {
    this.#output(
      'SecurityGroup',
      'Relays and evict call from it: let it in where clusters have private endpoints.',
      securityGroup.securityGroupId,
    );
    if (addresses.length === 0) return;
    this.#output(
      'Addresses',
      'Relays and evict call from these: let them in where public endpoints have an allow-list.',
      addresses.join(' '),
    );
  }

  #dashboardUrl(name: string): string {
    const { region } = this;
    return `https://${region}.${consoleHost(this)}/cloudwatch/home?region=${region}#dashboards/dashboard/${name}`;
  }

  #output(name: string, description: string, value: string): void {
    new CfnOutput(this, name, { description, value });
  }
}
