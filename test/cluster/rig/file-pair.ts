import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { Account } from './account.ts';
import { kubeconfigText } from './kubeconfig.ts';
import { ServiceProcess } from './service-process.ts';
import { runName, TestCluster } from './test-cluster.ts';
import { Wiretap } from './wiretap.ts';

/** Two clusters with one service for both, which reaches the second through a wiretap. */
export interface Pair {
  readonly alpha: TestCluster;
  readonly beta: TestCluster;
  readonly wiretap: Wiretap;
  readonly service: ServiceProcess;
}

/**
 * Returns a getter of one pair for all tests of the calling file; call the getter inside tests. Objects that are
 * created in both clusters have equal names.
 */
export function filePair(): () => Pair {
  const closing = new AsyncDisposableStack();
  let pair: Pair | undefined;
  before(async () => {
    pair = await open(closing);
  });
  after(() => closing.disposeAsync());
  return () => {
    if (!pair) throw new Error('The pair is open while tests run only.');
    return pair;
  };
}

async function open(closing: AsyncDisposableStack): Promise<Pair> {
  const run = runName();
  const dir = mkdtempSync(join(tmpdir(), 'taintward-cluster-'));
  closing.defer(() => rmSync(dir, { recursive: true, force: true }));
  const alpha = await TestCluster.open('KUBECONFIG', run);
  closing.defer(() => alpha.close());
  const beta = await TestCluster.open('KUBECONFIG_2', run);
  closing.defer(() => beta.close());
  const wiretap = await Wiretap.open(beta.connection);
  closing.defer(() => wiretap.close());
  const [alphaAccount, betaAccount] = await Promise.all([
    Account.create(alpha, 'service'),
    Account.create(beta, 'service'),
  ]);
  const kubeconfig = join(dir, 'kubeconfig');
  const content = await kubeconfigText([
    { context: 'alpha', connection: alpha.connection, token: alphaAccount.token },
    { context: 'beta', connection: wiretap.connection, token: betaAccount.token },
  ]);
  writeFileSync(kubeconfig, content, { mode: 0o600 });
  const service = await ServiceProcess.spawn({
    kubeconfig,
    contexts: ['alpha', 'beta'],
    stateDir: join(dir, 'state'),
  });
  closing.defer(() => service.kill());
  await service.ready();
  return { alpha, beta, wiretap, service };
}
