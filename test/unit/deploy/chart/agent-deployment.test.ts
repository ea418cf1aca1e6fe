import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadAll } from 'js-yaml';
import { agentDueUrl, agentNames, agentSchedules, agentsPrefix } from '#shared/aws/agent-names.ts';
import { agentEnvironment, PROBE_PORT, readEnvironment } from '#shared/aws/environment.ts';

interface Variable {
  readonly name: string;
  readonly value?: string;
}

/**
 * Returns the environment variables of the agent's Deployment with the values that Kubernetes fills in. The manifests
 * use the same Deployment as the chart.
 */
function chartEnvironment(): Readonly<Record<string, string>> {
  const path = join(import.meta.dirname, '../../../../deploy/agent/deployment.yaml');
  const [deployment] = (loadAll(readFileSync(path, 'utf8')) as { kind?: string; spec: object }[]).filter(
    (each) => each?.kind === 'Deployment',
  );
  const { spec } = deployment as {
    spec: { template: { spec: { containers: readonly [{ env: readonly Variable[] }] } } };
  };
  const filled: Record<string, string> = {};
  for (const { name, value = '10.0.0.7' } of spec.template.spec.containers[0].env)
    filled[name] = value.replace(/\$\((\w+)\)/g, (_, other: string) => filled[other] ?? assert.fail(other));
  return filled;
}

test('sets every variable of the agent in the chart and names its queues as their senders do', () => {
  const filled = chartEnvironment();
  const environment = readEnvironment(agentEnvironment, filled);
  assert.equal(filled['PROBE_PORT'], `${PROBE_PORT}`);
  const { AWS_REGION: region = '', ACCOUNT: account, SERVICE: service = '' } = filled;
  const prefix = agentsPrefix(service);
  const own = `https://sqs.${region}.amazonaws.com/${account}/${service}-evictions-due`;
  const { dueDeadLetters } = agentNames(prefix, environment.AGENT, region);
  assert.equal(environment.EVICTIONS_DUE_URL, agentDueUrl(own, prefix, environment.AGENT));
  assert.equal(environment.DEAD_LETTER_QUEUE_URL, new URL(dueDeadLetters, own).href);
  assert.deepEqual(
    {
      dueQueueArn: environment.EVICTIONS_DUE_ARN,
      groupName: environment.SCHEDULE_GROUP_NAME,
      roleArn: environment.SCHEDULE_ROLE_ARN,
    },
    agentSchedules(`arn:aws:sqs:${region}:${account}:${service}-evictions-due`, prefix, environment.AGENT),
  );
});

// The manifests are those of one partition; only the template has the others.
test("names no partition and no domain of AWS but those of the agent's region", () => {
  const path = join(import.meta.dirname, '../../../../deploy/chart/templates/_agent.tpl');
  const values = readFileSync(path, 'utf8').match(/(?<=value: )(arn|https):.*/g) ?? [];
  const own = /^(arn:\{\{ \$partition \}\}:|https:\/\/sqs\.\$\(AWS_REGION\)\.\{\{ \$domain \}\}\/)/;
  assert.ok(values.length > 0);
  assert.deepEqual(
    values.filter((value) => !own.test(value)),
    [],
  );
});
