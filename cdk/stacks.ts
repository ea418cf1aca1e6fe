import { type App, Stage } from 'aws-cdk-lib';
import { LOCALSTACK_ACCOUNT } from '#shared/aws/localstack.ts';
import { AgentStack } from './agent-stack.ts';
import type { Config } from './config.ts';
import { TaintwardStack } from './taintward-stack.ts';

/** The prefix of agents' stacks on the command line: `cdk deploy agents/edge-1`. */
const STAGE = 'agents';

export interface Stacks {
  readonly service: TaintwardStack;
  readonly agents: ReadonlyMap<string, AgentStack>;
}

/** The service's stack, and one for each agent, in a stage: CDK commands without a stack name mean the service's. */
export function addStacks(app: App, config: Config): Stacks {
  // A deployment to LocalStack names its account, so that the CDK deploys it to no other.
  const place = config.endpoint === 'localstack' ? { env: { account: LOCALSTACK_ACCOUNT } } : {};
  const service = new TaintwardStack(app, config.name, { config, ...place });
  const agents = Object.entries(config.agents ?? {});
  if (agents.length === 0) return { service, agents: new Map() };
  const stage = new Stage(app, STAGE);
  return {
    service,
    agents: new Map(
      agents.map(([id, agent]) => [id, new AgentStack(stage, id, { config, agent, ...place })]),
    ),
  };
}
