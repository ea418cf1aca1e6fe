import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AlarmSeen, Quotas } from '#shared/operations/fleet/account.ts';
import { alarmFindings, quotaFindings, versionFindings } from '#shared/operations/look/account-findings.ts';
import type { ClusterFinding } from '#shared/operations/look/finding.ts';
import { VERSION } from '#shared/version.ts';

const verdicts = (findings: readonly ClusterFinding[]) =>
  findings.map(({ verdict, message }) => `${verdict}: ${message}`);
const fixes = (findings: readonly ClusterFinding[]) =>
  findings.flatMap(({ remediation }) => remediation ?? []);

describe('quotas', () => {
  const quotas = (more: Partial<Quotas> = {}): Quotas => ({
    invocations: 1000,
    batches: { 'node-delta': 50, 'pod-delta': 50, evict: 50 },
    writesAtOnce: 4000,
    mostWrites: 40_000,
    ...more,
  });

  test('are sufficient for the default configuration of a small fleet', () => {
    assert.deepEqual(verdicts(quotaFindings(quotas(), 5_000)), [
      'ok: Lambda runs 1000 concurrent invocations of functions without reserved concurrency, and the service uses up to 152.',
      'ok: The table accepts up to 40000 writes per second when scaled, and immediately 4000 (2000 scheduled pods).',
    ]);
  });

  test('are insufficient in a new account with ten concurrent invocations', () => {
    const [lambda] = quotaFindings(quotas({ invocations: 10 }), 0);
    assert.equal(lambda?.verdict, 'warn');
    assert.match(lambda?.remediation ?? '', /concurrent executions/);
  });

  test('are compared with the number of nodes', () => {
    assert.deepEqual(fixes(quotaFindings(quotas(), 5_001)), ['Deploy with taintward:concurrency 200.']);
    assert.deepEqual(fixes(quotaFindings(quotas(), 20_001)), [
      'Set a warm throughput of 20000 writes on the table and its index before tainting many nodes together.',
      'Deploy with taintward:concurrency 500.',
    ]);
    const large = quotas({
      invocations: 2000,
      batches: { 'node-delta': 500, 'pod-delta': 500, evict: 500 },
      writesAtOnce: 20_000,
    });
    assert.deepEqual(fixes(quotaFindings(large, 100_000)), []);
  });
});

describe('alarms', () => {
  const alarm = (name: string, more: Partial<AlarmSeen> = {}): AlarmSeen => ({
    name,
    state: 'OK',
    since: 0,
    description: `${name} says.`,
    receivers: 1,
    ...more,
  });

  test('are fine if they have receivers and do not fire', () => {
    assert.deepEqual(verdicts(alarmFindings([alarm('a'), alarm('b')])), [
      'ok: All 2 alarms have an action. Whether subscriptions of its topic are confirmed is not checked.',
    ]);
  });

  test('are useless without receivers', () => {
    const [all] = alarmFindings([alarm('a', { receivers: 0 }), alarm('b', { receivers: 0 })]);
    assert.deepEqual([all?.verdict, all?.message], ['warn', '2 of 2 alarms have no subscribers.']);
    assert.match(all?.remediation ?? '', /taintward:alarmTopicArn/);
    const [some] = alarmFindings([alarm('a', { receivers: 0 }), alarm('b')]);
    assert.equal(some?.message, '1 of 2 alarms have no subscribers.');
  });

  test('print their description when they fire', () => {
    const [rings] = alarmFindings([alarm('late evictions', { state: 'ALARM' })]);
    assert.deepEqual(rings, {
      check: 'alarms',
      verdict: 'bad',
      message: 'Firing since 1970-01-01T00:00:00Z: late evictions.',
      remediation: 'late evictions says.',
    });
  });

  test('are reported without data, or if none exist', () => {
    assert.equal(
      alarmFindings([alarm('a', { state: 'INSUFFICIENT_DATA' })]).at(-1)?.message,
      '1 of 1 alarms have no data yet, as in the first minutes after a deployment.',
    );
    assert.equal(alarmFindings([])[0]?.verdict, 'warn');
  });
});

describe('releases', () => {
  const rows: readonly (readonly [string, string | undefined, readonly (string | undefined)[], string])[] = [
    ['all one', VERSION, [VERSION], `ok: Functions, relays, and this command are ${VERSION}.`],
    ['without relays', VERSION, [], `ok: Functions and this command are ${VERSION}.`],
    ['other functions', '0.0.9', ['0.0.9'], `warn: The functions are 0.0.9, this command is ${VERSION}.`],
    [
      'an older relay',
      VERSION,
      ['0.0.9', VERSION],
      `warn: The functions are ${VERSION}, but relays are 0.0.9.`,
    ],
    [
      'a relay that does not say it',
      VERSION,
      [undefined],
      `warn: The functions are ${VERSION}, but relays are unknown.`,
    ],
    ['functions that do not', undefined, [VERSION], 'warn: The release of the functions is unknown.'],
  ];
  for (const [name, release, relays, expected] of rows)
    test(name, () => assert.deepEqual(verdicts(versionFindings(release, relays)), [expected]));
});
