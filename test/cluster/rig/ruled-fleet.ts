import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { load } from 'js-yaml';
import { z } from 'zod';
import { systemClock } from '#shared/time/clock.ts';
import { type SimulatedCluster, startSimulatedCluster } from '#simulator/cluster.ts';
import { Account, MIN_PERMISSIONS } from './account.ts';
import { kubeconfigText } from './kubeconfig.ts';
import { ServiceProcess } from './service-process.ts';
import { runName, TestCluster } from './test-cluster.ts';

/** Rules that were read right before a command can be used for this long (docs/reference/policy.md). */
const RULES_HOLD_MS = 1_000;
const ROOT = join(import.meta.dirname, '../../..');
const Kubeconfig = z.object({
  clusters: z.array(z.object({ cluster: z.unknown() })).length(1),
  users: z.array(z.object({ user: z.unknown() })).length(1),
});

/** Two real clusters and some simulated ones under one service, which is controlled by the command line alone. */
export class RuledFleet {
  readonly alpha: TestCluster;
  readonly beta: TestCluster;
  readonly simulated: ReadonlyMap<string, SimulatedCluster>;
  readonly service: ServiceProcess;
  readonly #stateDir: string;

  private constructor(
    [alpha, beta]: readonly [TestCluster, TestCluster],
    simulated: ReadonlyMap<string, SimulatedCluster>,
    service: ServiceProcess,
    stateDir: string,
  ) {
    this.alpha = alpha;
    this.beta = beta;
    this.simulated = simulated;
    this.service = service;
    this.#stateDir = stateDir;
  }

  /** Opens the clusters alpha, beta, and sim-1 to sim-N. All start in observe mode, the default. */
  static async open(simulatedClusters: number, closing: AsyncDisposableStack): Promise<RuledFleet> {
    const dir = mkdtempSync(join(tmpdir(), 'taintward-fleet-'));
    closing.defer(() => rmSync(dir, { recursive: true, force: true }));
    const run = runName();
    const alpha = await TestCluster.open('KUBECONFIG', run);
    closing.defer(() => alpha.close());
    const beta = await TestCluster.open('KUBECONFIG_2', run);
    closing.defer(() => beta.close());
    const permissions = [...MIN_PERMISSIONS, { resource: 'pods/eviction', verbs: ['create'] }];
    const accounts = await Promise.all(
      [alpha, beta].map((cluster) => Account.create(cluster, 'service', permissions)),
    );
    const real = z
      .looseObject({
        clusters: z.array(z.unknown()),
        users: z.array(z.unknown()),
        contexts: z.array(z.unknown()),
      })
      .parse(
        JSON.parse(
          await kubeconfigText([
            { context: 'alpha', connection: alpha.connection, token: accounts[0]?.token ?? '' },
            { context: 'beta', connection: beta.connection, token: accounts[1]?.token ?? '' },
          ]),
        ),
      );
    const simulated = new Map<string, SimulatedCluster>();
    for (let index = 1; index <= simulatedClusters; index++) {
      const name = `sim-${index}`;
      const cluster = await startSimulatedCluster({ clock: systemClock, dir: join(dir, name) });
      closing.defer(() => cluster.close());
      const { clusters, users } = Kubeconfig.parse(load(readFileSync(cluster.kubeconfig, 'utf8')));
      real.clusters.push({ ...clusters[0], name });
      real.users.push({ ...users[0], name });
      real.contexts.push({ name, context: { cluster: name, user: name } });
      simulated.set(name, cluster);
    }
    const kubeconfig = join(dir, 'kubeconfig');
    writeFileSync(kubeconfig, JSON.stringify(real), { mode: 0o600 });
    const stateDir = join(dir, 'state');
    mkdirSync(stateDir, { mode: 0o700 });
    const service = await ServiceProcess.spawn({
      kubeconfig,
      contexts: ['alpha', 'beta', ...simulated.keys()],
      stateDir,
      policy: false,
    });
    closing.defer(() => service.kill());
    await service.ready();
    return new RuledFleet([alpha, beta], simulated, service, stateDir);
  }

  /** Runs `taintward …` beside the service; returns its output. */
  async taintward(...args: readonly string[]): Promise<string> {
    const command = ['functions/cli/main.ts', '--state-dir', this.#stateDir, ...args];
    const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: ROOT });
    return stdout;
  }

  /** Applies a policy to clusters; without names: to all. The policy is written as JSON, which is YAML. */
  async apply(policy: object, ...clusters: readonly string[]): Promise<void> {
    const file = join(this.#stateDir, 'applied.yaml');
    const guard = { cluster: 'off', zone: 'off', customTaints: 'off' };
    writeFileSync(file, JSON.stringify({ guard, ...policy }));
    const whose = clusters.length > 0 ? clusters : ['--all'];
    await this.order('policy', 'apply', '-f', file, ...whose, '--yes');
  }

  /** Runs a `taintward …` command that changes clusters' rules, and waits until no decision uses the previous rules. */
  async order(...args: readonly string[]): Promise<string> {
    const printed = await this.taintward(...args);
    await delay(RULES_HOLD_MS);
    return printed;
  }
}
