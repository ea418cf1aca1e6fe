import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Template } from 'aws-cdk-lib/assertions';
import { Command } from 'commander';
import { load } from 'js-yaml';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { addAccessOptions, parseAccess } from '#functions/cli/access-options.ts';
import { Granted } from '../permissions/granted.ts';
import { allows } from '../permissions/policy.ts';
import { readIn } from './place.ts';
import { type Properties, statementsIn } from './resources.ts';
import { synthesized } from './synthesized.ts';

const IRELAND = { partition: 'aws', region: 'eu-west-1', urlSuffix: 'amazonaws.com' };

const yamlOf = (path: string) => load(readFileSync(join(PROJECT_DIR, path), 'utf8')) as object;

describe("the template for clusters' accounts", () => {
  const text = JSON.stringify(readIn(IRELAND, Template.fromJSON(yamlOf('deploy/cluster-access.yaml'))));
  const { Resources, Outputs } = JSON.parse(text.replaceAll('<RoleSuffix>', '-prod')) as {
    readonly Resources: Readonly<Record<string, { readonly Properties: Properties }>>;
    readonly Outputs: { readonly NextStep: { readonly Value: string } };
  };
  const propertiesOf = (id: string) => Resources[id]?.Properties ?? assert.fail(id);

  for (const [part, other, id, otherId] of [
    ['relay', 'evict', 'Relay', 'Evict'],
    ['evict', 'relay', 'Evict', 'Relay'],
  ] as const) {
    const { RoleName, AssumeRolePolicyDocument, Policies } = propertiesOf(`${id}Role`);

    test(`names the role of ${part} so that only ${part} may assume it`, () => {
      const granted = new Granted(synthesized());
      const statements = { relay: granted.ofTasks(), evict: granted.ofFunction('taintward-evict') };
      assert.equal(RoleName, `taintward-${part}-prod`);
      const resource = `arn:aws:iam::210987654321:role/${RoleName}`;
      const request = { action: 'sts:AssumeRole', resource, context: {} };
      assert.deepEqual(
        [part, other].map((who) => allows(statements[who], [], request)),
        [true, false],
      );
    });

    test(`has the role of ${part} trust that role of the service alone, with the external ID`, () => {
      const { Version, Statement } = AssumeRolePolicyDocument as {
        readonly Version: string;
        readonly Statement: readonly object[];
      };
      const trust = Statement.map(({ Principal, ...statement }: { Principal?: unknown }) => {
        const account = { 'Fn::Select': [4, { 'Fn::Split': [':', `<${id}RoleArn>`] }] };
        assert.deepEqual(Principal, { AWS: account });
        return { ...statement, Resource: '*' };
      });
      const isTrusted = (principal: string, externalId?: string) =>
        allows(statementsIn({ Version, Statement: trust }), [], {
          action: 'sts:AssumeRole',
          resource: 'role',
          context: {
            'aws:PrincipalArn': [principal],
            ...(externalId && { 'sts:ExternalId': [externalId] }),
          },
        });
      assert.ok(isTrusted(`<${id}RoleArn>`, '<ExternalId>'));
      assert.ok(!isTrusted(`<${id}RoleArn>`));
      assert.ok(!isTrusted(`<${id}RoleArn>`, 'another'));
      assert.ok(!isTrusted(`<${otherId}RoleArn>`, '<ExternalId>'));
    });

    test(`lets the role of ${part} find the cluster, and makes it a member of the group in cdk/rbac`, () => {
      const [policy, ...others] = Policies as readonly { readonly PolicyDocument: unknown }[];
      assert.deepEqual(
        [statementsIn(policy?.PolicyDocument), others],
        [
          [
            {
              Effect: 'Allow',
              Action: ['eks:DescribeCluster'],
              Resource: ['arn:aws:eks:eu-west-1:111122223333:cluster/<ClusterName>'],
            },
          ],
          [],
        ],
      );
      const { subjects } = yamlOf(`cdk/rbac/${part}/cluster-role-binding.yaml`) as {
        readonly subjects: readonly { readonly name: string }[];
      };
      assert.deepEqual(propertiesOf(`${id}Access`), {
        ClusterName: '<ClusterName>',
        PrincipalArn: `<${id}Role.Arn>`,
        KubernetesGroups: subjects.map(({ name }) => name),
      });
    });
  }

  test('prints the command that registers the cluster', () => {
    const [npx, program, ...words] = Outputs.NextStep.Value.replaceAll(
      /<(Relay|Evict)Role\.Arn>/g,
      (_, part: string) => `arn:aws:iam::111122223333:role/taintward-${part.toLowerCase()}-prod`,
    ).split(' ');
    assert.deepEqual(
      [npx, program, ...words.splice(0, 3)],
      ['npx', 'taintward', 'clusters', 'add', '<ClusterName>'],
    );
    const command = addAccessOptions(new Command()).parse(words, { from: 'user' });
    const role = (part: string) => ({
      arn: `arn:aws:iam::111122223333:role/taintward-${part}-prod`,
      externalId: '<ExternalId>',
    });
    assert.deepEqual(parseAccess(command.opts()), {
      kind: 'eks',
      clusterName: '<ClusterName>',
      region: 'eu-west-1',
      role: { relay: role('relay'), evict: role('evict') },
    });
  });
});
