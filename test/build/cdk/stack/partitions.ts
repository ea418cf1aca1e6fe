import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Place, readIn } from './place.ts';
import { synthesized, synthesizedAgent } from './synthesized.ts';

const PLACES: readonly (Place & { readonly consoleHost: string })[] = [
  {
    partition: 'aws',
    region: 'eu-west-1',
    urlSuffix: 'amazonaws.com',
    consoleHost: 'console.aws.amazon.com',
  },
  {
    partition: 'aws-cn',
    region: 'cn-north-1',
    urlSuffix: 'amazonaws.com.cn',
    consoleHost: 'console.amazonaws.cn',
  },
  {
    partition: 'aws-us-gov',
    region: 'us-gov-west-1',
    urlSuffix: 'amazonaws.com',
    consoleHost: 'console.amazonaws-us-gov.com',
  },
  {
    partition: 'aws-eusc',
    region: 'eusc-de-east-1',
    urlSuffix: 'amazonaws.eu',
    consoleHost: 'console.amazonaws-eusc.eu',
  },
];

const DEPLOYMENTS = {
  'by default': {},
  'with a relay of your own': { 'taintward:relay': 'external' },
  'in a VPC of yours, with an event bus': {
    'taintward:vpcId': 'vpc-0123456789abcdef0',
    'taintward:subnetIds': 'subnet-0123456789abcdef0,subnet-0123456789abcdef1',
    'taintward:eventBus': 'ops',
  },
};

/** The names of service principals, in policies and in the services' output, are the same in all partitions. */
const PRINCIPALS = [
  ...['cloudformation', 'dynamodb', 'ecs-tasks', 'events', 'lambda', 'scheduler'],
  ...['pods.eks', 'sts'],
].map((service) => `${service}.amazonaws.com`);

/** Returns agents that assume their roles in each of the two ways, in a cluster of that partition. */
const agentsIn = ({ partition, region, urlSuffix }: Place) => ({
  pods: {
    cluster: 'a',
    podIdentity: { clusterArns: `arn:${partition}:eks:${region}:111122223333:cluster/a` },
  },
  account: {
    cluster: 'b',
    irsa: {
      oidcProvider: `arn:${partition}:iam::111122223333:oidc-provider/oidc.eks.${region}.${urlSuffix}/id/B`,
    },
  },
});

for (const place of PLACES) {
  describe(`in the partition ${place.partition}`, () => {
    test('every ARN and host of agents belongs to that partition', () => {
      const agents = agentsIn(place);
      for (const id of Object.keys(agents)) {
        const text = JSON.stringify(readIn(place, synthesizedAgent(id, { 'taintward:agents': agents })));
        const arns = text.match(/arn:[^:]*:/g) ?? [];
        assert.deepEqual([...new Set(arns)], [`arn:${place.partition}:`]);
        const hosts = text.match(/[\w.-]*amazon[\w-]*(\.[\w-]+)+/g) ?? [];
        assert.deepEqual(
          hosts.filter(
            (host) => !PRINCIPALS.includes(host) && !host.endsWith(`.${place.region}.${place.urlSuffix}`),
          ),
          [],
        );
        assert.ok(hosts.length > 1);
      }
    });

    for (const [how, context] of Object.entries(DEPLOYMENTS)) {
      const template = () => readIn(place, synthesized(context));

      test(`every ARN belongs to that partition, ${how}`, () => {
        const arns = JSON.stringify(template()).match(/arn:[^:]*:/g) ?? [];
        assert.ok(arns.length > 0);
        assert.deepEqual([...new Set(arns)], [`arn:${place.partition}:`]);
      });

      test(`every host belongs to that partition, ${how}`, () => {
        const { region, urlSuffix, consoleHost } = place;
        const hosts = JSON.stringify(template()).match(/[\w.-]*amazon[\w-]*(\.[\w-]+)+/g) ?? [];
        const others = hosts.filter((host) => !PRINCIPALS.includes(host));
        // VPC endpoints have reversed names, in every partition.
        const isOurs = (host: string) =>
          host === `${region}.${consoleHost}` ||
          host === `com.amazonaws.${region}.dynamodb` ||
          host.endsWith(`.${region}.${urlSuffix}`);
        assert.deepEqual(
          others.filter((host) => !isOurs(host)),
          [],
        );
        assert.ok(others.includes(`${region}.${consoleHost}`));
      });
    }
  });
}
