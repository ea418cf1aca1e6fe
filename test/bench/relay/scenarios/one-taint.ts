import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '#test/cluster/rig/figures.ts';
import { inTime, type Scenario } from '../figure.ts';
import { RelayProcess } from '../relay-process.ts';
import { SyntheticServer } from '../synthetic-server.ts';
import { delays, taintInTurn } from '../taints.ts';

const SIZE = { nodes: 5_000, podsPerNode: 30 };
const TAINTS = 200;
const EVERY_MS = 75;
const AIM_MS = 60;

export const oneTaint: Scenario = {
  about: 'a node is tainted: how long until its delta is queued',
  async run(report, options) {
    await using server = await SyntheticServer.start({ c0: SIZE });
    await using relay = new RelayProcess({ clusters: server.relayed('c0') });
    const what = 'one node tainted to its delta queued';
    if ((await relay.synced(options.capMs)) === undefined) {
      return report(inTime({ what, unit: 'ms', aim: AIM_MS }, undefined, options));
    }
    const goOn = (done: number) => done < TAINTS;
    const tainted = await taintInTurn(server, { cluster: 'c0', everyMs: EVERY_MS, goOn });
    await delay(1_000);
    const all = delays(tainted, await relay.query('deltas'), { cluster: 'c0', pods: SIZE.podsPerNode });
    const arrived = all.filter((ms) => ms !== undefined);
    const note = `${arrived.length} of ${TAINTS} sent`;
    report({ what: `${what}, p50`, value: quantile(arrived, 0.5), unit: 'ms', note });
    report({ what: `${what}, p99`, value: quantile(arrived, 0.99), unit: 'ms', aim: AIM_MS, note });
  },
};
