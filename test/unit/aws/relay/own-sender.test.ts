import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EnvironmentError } from '#shared/aws/environment.ts';
import { ownSender } from '#shared/aws/relay/aws-relay.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

const sts = (answer: object) => ({ send: async () => answer }) as never;
const away = { send: () => Promise.reject(new Error('STS is away')) } as never;

describe('the sender of a relay', () => {
  test('is its role, for any session name', async () => {
    const log = recordingLog();
    assert.equal(await ownSender(sts({ UserId: 'AROAX:i-1', Account: '123456789012' }), log), 'AROAX');
  });

  test('is the account where ENDPOINT is localstack', async () => {
    const log = recordingLog();
    const answer = { UserId: 'AKIAX', Account: '000000000000' };
    assert.equal(await ownSender(sts(answer), log, 'localstack'), '000000000000');
    assert.equal(await ownSender(sts(answer), log), 'AKIAX');
  });

  test('is never the account in a real account: a relay with ENDPOINT localstack does not start', async () => {
    const log = recordingLog();
    const answer = { UserId: 'AROAX:i-1', Account: '123456789012' };
    await assert.rejects(
      ownSender(sts(answer), log, 'localstack'),
      new EnvironmentError(
        'The environment variable ENDPOINT cannot be used (localstack is for account 000000000000 alone, and this is account 123456789012): unset it.',
      ),
    );
  });

  test('is unknown where STS does not answer, and the relay logs it', async () => {
    for (const endpoint of [undefined, 'localstack'] as const) {
      const log = recordingLog();
      assert.equal(await ownSender(away, log, endpoint), undefined);
      const error = new Error('STS is away');
      assert.deepEqual(log.lines, [{ level: 'warn', event: 'relay.identity-unknown', fields: { error } }]);
    }
  });

  test('is unknown where STS names none', async () => {
    const log = recordingLog();
    assert.equal(await ownSender(sts({ Account: '123456789012' }), log), undefined);
    assert.deepEqual(log.lines[0]?.fields, { error: new Error('STS returned no user ID') });
  });
});
