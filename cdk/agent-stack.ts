import { CfnOutput, Stack, type StackProps } from 'aws-cdk-lib';
import { AnyPrincipal, Effect, PolicyStatement, type Role } from 'aws-cdk-lib/aws-iam';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { type AgentNames, agentNames, agentsPrefix } from '#shared/aws/agent-names.ts';
import type {
  agentVariables,
  deltaQueueVariables,
  historyVariables,
  matchingVariables,
  ValuesOf,
} from '#shared/aws/environment.ts';
import { QUEUES, type QueueSpec } from '#shared/aws/queue-set.ts';
import { AgentIdentity } from './agent-identity.ts';
import { alarmTopics } from './alarm-topics.ts';
import { agentAlarmSpecs } from './alarms.ts';
import { bindItemsOf } from './cluster-items.ts';
import type { AgentConfig, Config } from './config.ts';
import { encryptData, grantDataKey } from './data-key.ts';
import { grant, setEndpoint, setInstallation } from './grantee.ts';
import { serviceAlarm } from './service-alarm.ts';
import { Timers } from './timers.ts';

export interface AgentStackProps extends StackProps {
  readonly config: Config;
  readonly agent: AgentConfig;
}

/**
 * One agent: a queue of due messages, schedules that send to it, an identity for its cluster alone, and alarms. It
 * refers to the service's stack only by name, so that either can be deployed without the other.
 */
export class AgentStack extends Stack {
  constructor(scope: Construct, id: string, { config, agent, ...props }: AgentStackProps) {
    const prefix = agentsPrefix(config.name);
    super(scope, id, {
      stackName: `${prefix}${id}`,
      description: `Taintward: what agent ${id} has, which works in cluster ${agent.cluster}`,
      ...props,
    });
    encryptData(this, config);
    const names = agentNames(prefix, id, this.region);
    const timers = new Timers(this, 'Timers', { prefix: names.prefix });
    const identity = new AgentIdentity(this, 'Identity', { agent, names });
    bindItemsOf(agent.cluster, identity, config.name);
    grantDataKey(identity);
    this.#bindDeltas(identity, config.name);
    timers.bindArm(identity);
    timers.due.bindTake(identity);
    this.#configure(identity, id, agent, config);
    if (identity.role) this.#closeQueues(timers, identity.role, names, prefix);
    const topics = alarmTopics(this, config);
    for (const spec of agentAlarmSpecs(id, timers)) serviceAlarm(this, spec, { prefix: config.name, topics });
    this.#outputNextSteps(identity, id, agent, config.name);
  }

  /** Queues cannot be divided by cluster: the delta functions check a message's sender against the cluster's lease. */
  #bindDeltas(identity: AgentIdentity, installation: string): void {
    const queue = ({ name }: QueueSpec) =>
      Queue.fromQueueArn(this, name, this.formatArn({ service: 'sqs', resource: `${installation}-${name}` }));
    const [nodes, pods] = [queue(QUEUES.nodeDeltas), queue(QUEUES.podDeltas)];
    identity.setEnvironment({
      NODE_DELTAS_URL: nodes.queueUrl,
      POD_DELTAS_URL: pods.queueUrl,
    } satisfies ValuesOf<typeof deltaQueueVariables>);
    grant(identity, ['sqs:SendMessage'], [nodes.queueArn, pods.queueArn]);
  }

  /** Sets the environment variables that give no access. */
  #configure(identity: AgentIdentity, id: string, { cluster }: AgentConfig, config: Config): void {
    setEndpoint(identity, config);
    identity.setEnvironment({
      AGENT: id,
      CLUSTER: cluster,
      HISTORY_DAYS: String(config.historyDays),
      COMPARISON_OPERATORS: String(config.comparisonOperators),
    } satisfies ValuesOf<typeof agentVariables & typeof historyVariables & typeof matchingVariables>);
    setInstallation(identity, config);
  }

  /**
   * Whatever the other permissions: only the agent receives its cluster's due messages, and no other agent uses its
   * queues. Service, operators and schedules may send: their roles have arbitrary names.
   */
  #closeQueues({ due }: Timers, role: Role, names: AgentNames, prefix: string): void {
    const roleNamed = (resourceName: string) =>
      this.formatArn({ service: 'iam', region: '', resource: 'role', resourceName });
    due.queue.addToResourcePolicy(
      new PolicyStatement({
        sid: 'TakenByItsAgentOnly',
        effect: Effect.DENY,
        principals: [new AnyPrincipal()],
        actions: ['ReceiveMessage', 'DeleteMessage', 'ChangeMessageVisibility', 'PurgeQueue'].map(
          (action) => `sqs:${action}`,
        ),
        resources: [due.queue.queueArn],
        conditions: { ArnNotEquals: { 'aws:PrincipalArn': role.roleArn } },
      }),
    );
    for (const { queue } of [due, due.deadLetters]) {
      queue.addToResourcePolicy(
        new PolicyStatement({
          sid: 'NoOtherAgent',
          effect: Effect.DENY,
          principals: [new AnyPrincipal()],
          actions: ['sqs:*'],
          resources: [queue.queueArn],
          conditions: {
            ArnLike: { 'aws:PrincipalArn': roleNamed(`${prefix}*`) },
            ArnNotEquals: { 'aws:PrincipalArn': [names.role, names.scheduleRole].map(roleNamed) },
          },
        }),
      );
    }
  }

  #outputNextSteps(
    { role, policy, environment }: AgentIdentity,
    id: string,
    { cluster, namespace, serviceAccount, podIdentity, irsa }: AgentConfig,
    installation: string,
  ): void {
    if (role) this.#output('Role', 'What the agent becomes.', role.roleArn);
    if (policy)
      this.#output('Policy', 'Attach it to the role that your agent runs as.', policy.managedPolicyArn);
    for (const [index, arn] of (podIdentity?.clusterArns ?? []).entries()) {
      const [, , , region, , name] = arn.split(':');
      this.#output(
        `PodIdentity${index === 0 ? '' : index + 1}`,
        'Have the pods of the agent become that role.',
        `aws eks create-pod-identity-association --region ${region} --cluster-name ${name?.replace('cluster/', '')} --namespace ${namespace} --service-account ${serviceAccount} --role-arn ${role?.roleArn}`,
      );
    }
    const account = { region: this.region, account: this.account };
    const values = {
      mode: 'agent',
      agent: { ...account, installation, cluster, id, ...(irsa && role ? { roleArn: role.roleArn } : {}) },
    };
    this.#output(
      'Values',
      'Install the chart with these in a file (helm --values).',
      this.toJsonString(values),
    );
    const variables = Object.entries({ AWS_REGION: this.region, ...environment });
    this.#output(
      'Environment',
      'Environment of an agent that is installed without the chart.',
      variables.map(([name, value]) => `${name}=${value}`).join(' '),
    );
    this.#output(
      'NextStep',
      'No relay of the service enters the cluster then.',
      `npx taintward clusters add ${cluster} --agent ${id}`,
    );
  }

  #output(name: string, description: string, value: string): void {
    new CfnOutput(this, name, { description, value });
  }
}
