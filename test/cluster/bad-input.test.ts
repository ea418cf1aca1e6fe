import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { Account, MIN_PERMISSIONS } from './rig/account.ts';
import { fileStage } from './rig/file-stage.ts';
import { kubeconfigText } from './rig/kubeconfig.ts';
import { type ServiceOptions, ServiceProcess } from './rig/service-process.ts';
import { CONTEXT } from './rig/stage.ts';
import { runName, TestCluster } from './rig/test-cluster.ts';
import { until } from './rig/until.ts';

const stage = fileStage('bare');

/** The second context of a kubeconfig that has two. */
const OTHER = 'beta';

/** Starts a service that cannot work, and returns the single sentence with which it ends on standard error. */
async function refusal(options: Partial<ServiceOptions>): Promise<string> {
  const service = await ServiceProcess.spawn({
    kubeconfig: stage().kubeconfig,
    contexts: [CONTEXT],
    stateDir: stage().newStateDir(),
    ...options,
  });
  const { code, stderr } = await until('it ends', () => service.ended).finally(() => service.kill());
  assert.equal(code, 1, stderr);
  const [sentence = '', ...rest] = stderr.split('\n');
  assert.deepEqual(rest, [''], 'one line');
  assert.doesNotMatch(sentence, /\bat .*:\d+:\d+|Error:/, 'no stack');
  return sentence;
}

describe('a kubeconfig', () => {
  test('is rejected when the file is missing', async () => {
    const kubeconfig = join(stage().newStateDir(), 'absent');
    assert.match(await refusal({ kubeconfig }), new RegExp(`${kubeconfig} .*ENOENT`));
  });

  test('is rejected when it is not YAML', async () => {
    const kubeconfig = stage().write('broken', 'apiVersion: v1\nclusters: [\n');
    assert.match(await refusal({ kubeconfig }), /broken .*YAML/);
  });

  test('is rejected when it is YAML but no kubeconfig', async () => {
    const kubeconfig = stage().write('other', 'clusters: 5\n');
    assert.match(await refusal({ kubeconfig }), /other .*\bclusters\b/);
  });

  test('is rejected without the selected context', async () => {
    assert.match(await refusal({ contexts: ['nowhere'] }), /"nowhere".*alpha/);
  });

  test('is rejected without one of the selected contexts', async () => {
    const contexts = [CONTEXT, 'nowhere'];
    assert.match(await refusal({ contexts }), /"nowhere".*alpha/);
  });
});

describe('a token', () => {
  test('is rejected when it is not a token', async () => {
    const { cluster } = stage();
    const kubeconfig = await stage().writeKubeconfig('bad-token', cluster.connection, 'no-token');
    assert.match(await refusal({ kubeconfig }), /alpha: .*401 Unauthorized/);
  });

  test('is rejected when its account was deleted', async () => {
    const { cluster } = stage();
    const account = await Account.create(cluster, 'leaver');
    await account.delete();
    const kubeconfig = await stage().writeKubeconfig('old-token', cluster.connection, account.token);
    const sentence = await refusal({ kubeconfig });
    assert.match(sentence, /alpha: .*401 Unauthorized/);
    assert.ok(!sentence.includes(account.token), 'the token is not shown');
  });

  test('is rejected without the required permissions', async () => {
    const { cluster } = stage();
    const rules = MIN_PERMISSIONS.map(({ resource, verbs }) => ({
      resource,
      verbs: verbs.filter((verb) => verb !== 'delete' && verb !== 'patch'),
    })).filter(({ verbs }) => verbs.length > 0);
    const account = await Account.create(cluster, 'reader', rules);
    const kubeconfig = await stage().writeKubeconfig('reader', cluster.connection, account.token);
    assert.match(await refusal({ kubeconfig }), /delete pods, patch pods\/status/);
  });
});

describe('the failing cluster of two', () => {
  let other: TestCluster;
  before(async () => {
    other = await TestCluster.open('KUBECONFIG_2', runName());
  });
  after(() => other?.close());

  /** The second context refers to the second cluster, with this token. */
  const writePair = async (token: string): Promise<string> => {
    const { cluster, account } = stage();
    const entries = [
      { context: CONTEXT, connection: cluster.connection, token: account.token },
      { context: OTHER, connection: other.connection, token },
    ];
    return stage().write('pair', await kubeconfigText(entries));
  };

  const startPair = async (t: TestContext, token: string): Promise<ServiceProcess> => {
    const service = await ServiceProcess.spawn({
      kubeconfig: await writePair(token),
      contexts: [CONTEXT, OTHER],
      stateDir: stage().newStateDir(),
    });
    t.after(() => service.kill());
    await service.untilPrinted(`${CONTEXT}  watching`);
    return service;
  };

  test('with a bad token joins the other when its kubeconfig is repaired', async (t) => {
    const service = await startPair(t, 'no-token');
    await service.untilPrinted(`${OTHER}  cluster.access-denied`, '401 Unauthorized');
    const [refused = '', live] = (await service.states()) ?? [];
    assert.match(refused, new RegExp(`^${OTHER} access-denied: .*401 `));
    assert.equal(live, `${CONTEXT} live`);
    await writePair((await Account.create(other, 'repaired')).token);
    await service.untilPrinted(`${OTHER}  watching`);
    assert.deepEqual(await service.states(), [`${CONTEXT} live`, `${OTHER} live`]);
  });

  test('without permissions joins the other when they are granted', async (t) => {
    const account = await Account.create(other, 'late');
    await account.revoke();
    const service = await startPair(t, account.token);
    await service.untilPrinted(`${OTHER}  cluster.access-denied`, 'delete pods');
    await account.grant();
    await service.untilPrinted(`${OTHER}  watching`);
  });
});

describe('a state directory', () => {
  test('is rejected when it is a file', async () => {
    const stateDir = stage().write('a-file', '');
    assert.match(await refusal({ stateDir }), /a-file .*EEXIST/);
  });

  test('is rejected when another process uses it', async () => {
    const stateDir = stage().newStateDir();
    await stage().start({ stateDir });
    assert.match(await refusal({ stateDir }), new RegExp(`${stateDir} .*--state-dir DIR`));
  });

  test('is rejected when its store is damaged', async () => {
    const stateDir = stage().newStateDir();
    writeFileSync(join(stateDir, 'store.sqlite'), 'not a database at all, by any means '.repeat(100));
    assert.match(await refusal({ stateDir }), /store\.sqlite /);
  });
});

test('rejects a port that is in use', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  assert.match(await refusal({ port }), new RegExp(` ${port} .* --port$`));
  server.close();
});
