import { systemClock } from '#shared/time/clock.ts';
import { startSimulatedCluster } from '#simulator/cluster.ts';

/** Starts the cluster of the given directory, taints a node, reports it, and runs until it is killed. */
const [dir = ''] = process.argv.slice(2);
const cluster = await startSimulatedCluster({ clock: systemClock, dir });
cluster.taint('node-1', 'maintenance=now:NoExecute');
process.stdout.write('tainted\n');
