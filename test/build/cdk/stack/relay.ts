import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { before, describe, test } from 'node:test';
import type { Template } from 'aws-cdk-lib/assertions';
import { Registry } from 'prom-client';
import { readEnvironment, relayEnvironment } from '#shared/aws/environment.ts';
import { startProbeServer } from '#shared/engine/clusters/probe-server.ts';
import { type Properties, readable, resourcesOf, resourceWith } from './resources.ts';
import { synthesized } from './synthesized.ts';

const only = (template: Template, type: string): Properties => {
  const found = [...resourcesOf(template, type).values()];
  assert.equal(found.length, 1, type);
  return found[0] ?? {};
};

describe('the relay on Fargate', () => {
  let template: Template;
  before(() => {
    template = synthesized();
  });

  const container = (): Properties => {
    const [found] = only(template, 'AWS::ECS::TaskDefinition')[
      'ContainerDefinitions'
    ] as readonly Properties[];
    return found ?? {};
  };

  describe('has a health check', () => {
    /** Returns the exit code of the check against a server at a port of its own. */
    async function checked(answer: RequestListener): Promise<unknown> {
      const server = createServer(answer).listen(0, '127.0.0.1');
      try {
        await once(server, 'listening');
        return await run((server.address() as AddressInfo).port);
      } finally {
        server.close();
        server.closeAllConnections();
      }
    }

    async function run(port: number): Promise<unknown> {
      const { Command, Timeout } = container()['HealthCheck'] as { Command: string[]; Timeout: number };
      const [how, program = '', ...args] = Command;
      assert.equal(how, 'CMD');
      const command = args.map((word) => word.replace('127.0.0.1/8080 ', `127.0.0.1/${port} `));
      const [code] = await once(
        spawn(program, command, { env: {}, stdio: 'ignore', timeout: Timeout * 1_000 }),
        'close',
      );
      return code;
    }

    test('that succeeds while the relay answers as its probes do', async () => {
      const probes = await startProbeServer(
        { host: '127.0.0.1', port: 0, setBy: { host: 'PROBE_HOST', port: 'PROBE_PORT' } },
        {
          registry: new Registry(),
          states: () => new Map(),
          trips: () => new Map(),
          faults: () => new Map(),
          log: { error: (event) => assert.fail(event) },
        },
      );
      try {
        assert.equal(await run(probes.port), 0);
      } finally {
        await probes.close();
      }
    });

    test('that fails when it answers with a failure, or nothing listens', async () => {
      assert.equal(await checked((_, response) => response.writeHead(503).end('200')), 1);
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      server.close();
      await once(server, 'close');
      assert.equal(await run(port), 1);
    });

    test('that fails when it does not answer, before ECS ends the check', async () => {
      const code = await checked(() => undefined);
      assert.ok(typeof code === 'number' && code > 0, `it ended with ${code}`);
    });
  });

  test('has the environment that it reads', () => {
    const given = container()['Environment'] as readonly { Name: string; Value: unknown }[];
    const variables = given.map(({ Name, Value }) => [
      Name,
      typeof Value === 'string' ? Value : 'https://example.com/1/q',
    ]);
    readEnvironment(relayEnvironment, Object.fromEntries(variables));
  });

  describe('has surroundings:', () => {
    interface Resource {
      readonly Type: string;
      readonly DependsOn?: readonly string[];
    }
    const resources = (stack: Template) =>
      Object.entries(stack.toJSON()['Resources'] as Record<string, Resource>);
    const service = (stack: Template) =>
      resources(stack).find(([, { Type }]) => Type === 'AWS::ECS::Service')?.[1];
    const awaited = (stack: Template, type: RegExp) => {
      const ids = resources(stack).flatMap(([id, { Type }]) => (type.test(Type) ? [id] : []));
      assert.ok(ids.length > 0);
      return ids.filter((id) => !service(stack)?.DependsOn?.includes(id));
    };

    test('its network exists before it starts, and until its last task has drained', () => {
      assert.deepEqual(awaited(template, /^AWS::EC2::/), []);
      const imported = synthesized({
        'taintward:vpcId': 'vpc-0123456789abcdef0',
        'taintward:subnetIds': ['subnet-0123456789abcdef0', 'subnet-0123456789abcdef1'],
      });
      assert.deepEqual(awaited(imported, /^AWS::EC2::SecurityGroup$/), []);
    });

    test('the functions that read its messages are created, and replaced, before it', () => {
      assert.deepEqual(awaited(template, /^AWS::Lambda::Function$/), []);
    });

    test('its cluster waits for nothing: ECS creates its service-linked role with the first cluster of an account', () => {
      const [[, cluster] = []] = resources(template).filter(([, { Type }]) => Type === 'AWS::ECS::Cluster');
      assert.equal(cluster?.DependsOn, undefined);
      assert.doesNotMatch(JSON.stringify(cluster), /"Ref"|Fn::|CapacityProviders/);
    });
  });
});

describe('with clusters that admit only a network or addresses,', () => {
  const evictIn = (template: Template) =>
    readable(
      resourceWith(template, 'AWS::Lambda::Function', 'FunctionName', 'taintward-evict').properties[
        'VpcConfig'
      ],
    ) as { SubnetIds: readonly string[]; SecurityGroupIds: readonly string[] };

  test('evict uses them, even where relays run elsewhere', () => {
    const template = synthesized({ 'taintward:relay': 'external', 'taintward:staticEgressIps': 'true' });
    assert.equal(resourcesOf(template, 'AWS::EC2::NatGateway').size, 2);
    assert.equal(evictIn(template).SubnetIds.length, 2);
  });
});

describe('a relay of your own', () => {
  let template: Template;
  before(() => {
    template = synthesized({ 'taintward:relay': 'external' });
  });

  test('has outputs with its policy and its start command', () => {
    const outputs = template.toJSON()['Outputs'] as Record<string, { Value: unknown }>;
    const [policy = ''] = resourcesOf(template, 'AWS::IAM::ManagedPolicy').keys();
    assert.equal(readable(outputs['RelayPolicy']?.Value), `<${policy}>`);
    const command = String(readable(outputs['RelayCommand']?.Value));
    assert.match(command, /^AWS_REGION=<AWS::Region> TABLE_NAME=\S+ .* npm run relay$/);
    const variables = [...command.matchAll(/(\w+)=\S+/g)].map(([, name]) => [
      name,
      'https://example.com/1/q',
    ]);
    readEnvironment(relayEnvironment, Object.fromEntries(variables));
  });
});
