import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  AwsSolutionsChecks,
  HIPAASecurityChecks,
  NIST80053R4Checks,
  NIST80053R5Checks,
  PCIDSS321Checks,
  ServerlessChecks,
} from 'cdk-nag';
import { blocksOf, pageText } from '#test/transcripts/page.ts';
import { ACCOUNT, REGION } from '../permissions/granted.ts';
import { allows } from '../permissions/policy.ts';
import { resourcesOf, statementsIn } from './resources.ts';
import { findingsOf, synthesized } from './synthesized.ts';

const PAGE = pageText('how-to/governed-account.md');
const [SETTINGS = {}, KEY_POLICY = {}] = blocksOf(PAGE)
  .filter(({ language }) => language === 'json')
  .map(
    ({ lines }): Record<string, unknown> =>
      JSON.parse(lines.join('\n').replaceAll('REGION', REGION).replaceAll('ACCOUNT', ACCOUNT)),
  );

const PACKS = [
  ...[AwsSolutionsChecks, HIPAASecurityChecks, NIST80053R4Checks],
  ...[NIST80053R5Checks, PCIDSS321Checks, ServerlessChecks],
];

/** Returns the rows of the page's table with this heading as text: name and numbers. */
const rowsOf = (heading: string): readonly string[] => {
  const table = PAGE.slice(PAGE.indexOf(`| ${heading} | default |`)).split('\n\n', 1)[0] ?? '';
  return [...table.matchAll(/^\| `(.+?)` \| (\d+) \| (\d+) \|/gm)].map(([, ...cells]) => cells.join(' '));
};

test('cdk-nag finds what the page on governed accounts says, in all packs', () => {
  const packs = new Map<string, number[]>();
  const rules = new Map<string, number[]>();
  for (const [index, context] of [{}, SETTINGS].entries()) {
    const seen = new Map<string, number>();
    for (const { pack, rule, count } of findingsOf(context, PACKS)) {
      const total = packs.get(pack) ?? packs.set(pack, [0, 0]).get(pack) ?? [];
      total[index] = (total[index] ?? 0) + count;
      if (count === 0) continue;
      assert.equal(seen.get(rule) ?? count, count, `${rule} differs by pack`);
      seen.set(rule, count);
      const counts = rules.get(rule) ?? rules.set(rule, [0, 0]).get(rule) ?? [];
      counts[index] = count;
    }
  }
  const listed = (counted: ReadonlyMap<string, readonly number[]>) =>
    [...counted].map(([name, counts]) => [name, ...counts].join(' ')).toSorted();
  assert.deepEqual(listed(packs), rowsOf('pack').toSorted());
  assert.deepEqual(listed(rules), rowsOf('rule'));
});

describe("the page's settings for a governed account", () => {
  test('give each role the permissions boundary', () => {
    const roles = [...resourcesOf(synthesized(SETTINGS), 'AWS::IAM::Role').values()];
    for (const { PermissionsBoundary } of roles)
      assert.match(JSON.stringify(PermissionsBoundary), /:policy\/workload-boundary"/);
    assert.ok(roles.length > 5);
  });

  test('encrypt table, queues, logs, and topic with the key', () => {
    for (const [type, count] of Object.entries({
      'DynamoDB::Table': 1,
      'SQS::Queue': 7,
      'Logs::LogGroup': 6,
      'SNS::Topic': 1,
    })) {
      const all = [...resourcesOf(synthesized(SETTINGS), `AWS::${type}`).values()];
      const keys = all.map(
        (each) => /"(?:KMSMasterKeyId|KmsMasterKeyId|KmsKeyId)":"([^"]+)"/.exec(JSON.stringify(each))?.[1],
      );
      assert.deepEqual(
        keys,
        Array.from({ length: count }, () => SETTINGS['taintward:kmsKeyArn']),
        type,
      );
    }
  });

  test('let CloudWatch write the logs and publish alarms, by the key policy of the page, and no other logs', () => {
    const [, logs, alarms] = statementsIn(KEY_POLICY);
    assert.ok(logs && alarms);
    const arnOf = (name: unknown) => `arn:aws:logs:${REGION}:${ACCOUNT}:log-group:${name}`;
    const mayWrite = (arn: string) =>
      ['Encrypt', 'Decrypt', 'GenerateDataKey'].every((action) =>
        allows([logs], [], {
          action: `kms:${action}`,
          resource: String(SETTINGS['taintward:kmsKeyArn']),
          context: { 'kms:EncryptionContext:aws:logs:arn': [arn] },
        }),
      );
    const groups = [...resourcesOf(synthesized(SETTINGS), 'AWS::Logs::LogGroup').values()];
    for (const { LogGroupName } of groups) assert.ok(mayWrite(arnOf(LogGroupName)), String(LogGroupName));
    assert.equal(mayWrite(arnOf('/aws/lambda/other')), false);
    assert.deepEqual(alarms.Principal, { Service: 'cloudwatch.amazonaws.com' });
    assert.deepEqual(alarms.Action, ['kms:Decrypt', 'kms:GenerateDataKey*']);
  });

  test('let no policy name a role of the bootstrap, except for the deletion of the table', () => {
    const template = JSON.stringify(synthesized(SETTINGS).toJSON());
    assert.deepEqual(template.match(/role\/cdk-[^"$]*/g), ['role/cdk-hnb659fds-cfn-exec-role-']);
  });
});
