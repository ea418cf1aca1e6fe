import { systemClock } from '#shared/time/clock.ts';
import { startSimulatedCluster } from '#simulator/cluster.ts';

/** Brings up the cluster of the directory it is given, taints a node, tells so, and lives until it is killed. */
const [dir = ''] = process.argv.slice(2);
const cluster = await startSimulatedCluster({ clock: systemClock, dir });
cluster.taint('node-1', 'maintenance=now:NoExecute');
process.stdout.write('tainted\n');
