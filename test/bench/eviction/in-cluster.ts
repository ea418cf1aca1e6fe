import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { currentContext, readKubeconfig } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { type Scenario, takingTurns } from '#test/bench/scenario.ts';
import { AdminApi } from '#test/cluster/rig/admin-api.ts';
import { installKinds } from '#test/cluster/rig/installed-kinds.ts';
import { ServerLoad } from '#test/cluster/rig/server-load.ts';
import { ServiceProcess } from '#test/cluster/rig/service-process.ts';
import { connectionTo, runName } from '#test/cluster/rig/test-cluster.ts';
import { asInImage, type Contender, ours as inFile } from './contender.ts';
import { lateness } from './lateness.ts';
import { type Eviction, Population, type Shape } from './population.ts';

const WITHIN_MS = 15 * 60_000;
const FILE = 'state in a file';

/** The load of an API server while pods were evicted. */
interface Load {
  readonly etcdWrites: number;
  readonly etcdRequests: number;
  readonly nodeEvictions: number;
  readonly bytes: number;
}

type Loaded = Eviction & { readonly load: Load };

/**
 * Measures etcd's load for pods on nodes that are all tainted simultaneously, with the state in the cluster and in a
 * file.
 */
export const inCluster = (shape: Shape, usualRuns: number): Scenario => {
  const count = (shape.nodes * shape.podsPerNode).toLocaleString('en');
  return {
    about: `${count} pods on ${shape.nodes} nodes go at once: the state in the cluster itself, beside a file`,
    async run(report, { runs = usualRuns, short }) {
      const used = short ? { ...shape, nodes: 2, podsPerNode: 5 } : shape;
      const pods = used.nodes * used.podsPerNode;
      await using population = await Population.on(used);
      const connection = connectionTo('KUBECONFIG');
      const api = new AdminApi(connection);
      try {
        await installKinds(api);
        const evicted = async (contender: Contender): Promise<Loaded> => {
          const loads: Load[] = [];
          const eviction = await population.evictedBy(measured(contender, connection, loads), WITHIN_MS);
          const [load] = loads;
          if (load === undefined) throw new Error('What the API server did was not measured.');
          return { ...eviction, load };
        };
        const byContender = await takingTurns(short ? 1 : runs, {
          cluster: () => evicted(inNamespace(api)),
          file: () => evicted(inFile),
        });
        const compared = (pick: (eviction: Loaded) => number) => ({
          ours: byContender.cluster.map(pick),
          peer: { name: FILE, values: byContender.file.map(pick) },
        });
        report({
          what: 'evictions per second',
          unit: 'pods/s',
          ...compared(({ pods: gone, tookMs }) => round((gone.length * 1000) / tookMs, 1)),
          aim: { of: 'ratio', atLeast: 0.8 },
        });
        for (const figure of lateness(compared)) report(figure);
        report({
          what: "writes of a node's object",
          unit: '',
          ours: byContender.cluster.map(({ load }) => round(load.nodeEvictions / used.nodes, 2)),
        });
        report({
          what: "bytes of a node's object as it is written",
          unit: 'B',
          ours: byContender.cluster.map(({ load }) => round(load.bytes / load.nodeEvictions)),
        });
        report({
          what: 'writes to etcd for each pod',
          unit: '',
          ...compared(({ load }) => round(load.etcdWrites / pods, 2)),
          aim: { of: 'ratio', atMost: 1.1 },
        });
        report({
          what: 'all requests to etcd for each pod',
          unit: '',
          ...compared(({ load }) => round(load.etcdRequests / pods, 2)),
        });
        report({
          what: 'resident, at the most',
          unit: 'MiB',
          ...compared(({ after }) => round(after?.peakMiB ?? Number.NaN)),
        });
        report({
          what: 'CPU',
          unit: 's',
          ...compared(({ before, after }) =>
            round((after?.cpuSeconds ?? Number.NaN) - (before?.cpuSeconds ?? 0), 2),
          ),
        });
      } finally {
        api.close();
      }
    },
  };
};

/** A replica that keeps all state in a namespace of its own, in the cluster of `KUBECONFIG`. */
const inNamespace =
  (api: AdminApi): Contender =>
  async () => {
    const { KUBECONFIG: kubeconfig = '' } = process.env;
    const namespace = runName();
    await api.create('/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    });
    const contexts = [currentContext(readKubeconfig(kubeconfig))];
    const service = await ServiceProcess.start({
      kubeconfig,
      contexts,
      inCluster: namespace,
      ...asInImage(),
    });
    return {
      usage: () => service.usage(),
      stop: async () => {
        await service.stop();
        await api.remove(`/apis/taintward.dev/v1/namespaces/${namespace}/nodeevictions`);
        await api.remove(`/api/v1/namespaces/${namespace}`);
      },
    };
  };

/** Returns the same contender. The API server's load between its readiness and its end is added to `loads`. */
const measured =
  (contender: Contender, connection: Connection, loads: Load[]): Contender =>
  async () => {
    const evictor = await contender();
    const before = await ServerLoad.of(connection);
    return {
      usage: () => evictor.usage(),
      stop: async () => {
        const after = await ServerLoad.of(connection);
        const [had, has] = [before.bodies('nodeevictions'), after.bodies('nodeevictions')];
        loads.push({
          etcdWrites: after.etcdWrites() - before.etcdWrites(),
          etcdRequests: after.etcdRequests() - before.etcdRequests(),
          nodeEvictions: has.count - had.count,
          bytes: has.bytes - had.bytes,
        });
        await evictor.stop();
      },
    };
  };

const round = (value: number, decimals = 0): number => Math.round(value * 10 ** decimals) / 10 ** decimals;
