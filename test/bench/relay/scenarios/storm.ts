import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '#test/cluster/rig/figures.ts';
import { inTime, type Scenario } from '../figure.ts';
import { RelayProcess } from '../relay-process.ts';
import { nodeNameOf } from '../server/node-object.ts';
import { SyntheticServer } from '../synthetic-server.ts';
import { delays, taintInTurn } from '../taints.ts';

const SIZE = { nodes: 5_000, podsPerNode: 30 };
const OTHER = { nodes: 500, podsPerNode: 30 };
const EVERY_MS = 100;
/** The other cluster's taints are already in progress when the storm begins. */
const LEAD_MS = 500;
const POLL_MS = 250;
/** A delta that is sent after all nodes were reported is a repetition. */
const QUIET_MS = 3_000;

export const storm: Scenario = {
  about: '5,000 nodes are tainted at once, and another cluster has taints meanwhile',
  async run(report, options) {
    await using server = await SyntheticServer.start({ big: SIZE });
    await using others = await SyntheticServer.start({ other: OTHER });
    await using relay = new RelayProcess({
      clusters: [...server.relayed('big'), ...others.relayed('other')],
    });
    const cpuFigure = {
      what: '5,000 nodes of 30 pods tainted at once: relay CPU',
      unit: 's',
      aim: 10,
    } as const;
    const lateFigure = { what: 'another cluster’s taint meanwhile, longest', unit: 'ms', aim: 200 } as const;
    if ((await relay.synced(options.capMs)) === undefined) {
      report(inTime(cpuFigure, undefined, options));
      return report(inTime(lateFigure, undefined, options));
    }
    const { process } = relay;
    const cpuBefore = process.cpuSeconds;
    const nodes = Array.from({ length: SIZE.nodes }, (_, node) => node);
    let over = false;
    const meanwhile = taintInTurn(others, {
      cluster: 'other',
      everyMs: EVERY_MS,
      goOn: (done) => !over && done < OTHER.nodes,
    });
    await delay(LEAD_MS);
    const begunAt = await server.command({ kind: 'taint', cluster: 'big', nodes });
    // The relay is asked only for a count while it works, because parsing its deltas costs CPU time, too.
    const samples: { readonly at: number; readonly cpu: number }[] = [];
    let [sent, grewAt] = [0, Date.now()];
    while (Date.now() < begunAt + options.capMs) {
      samples.push({ at: Date.now(), cpu: process.cpuSeconds - cpuBefore });
      const now = (await relay.query('memory')).sent;
      if (now > sent) [sent, grewAt] = [now, Date.now()];
      else if (sent >= SIZE.nodes && Date.now() - grewAt > QUIET_MS) break;
      await delay(POLL_MS);
    }
    const peak = process.peakMb;
    over = true;
    const othersTainted = await meanwhile;
    await delay(1_000);
    const deltas = await relay.query('deltas');
    const tainted = new Map(nodes.map((node) => [nodeNameOf(node), begunAt]));
    const all = delays(tainted, deltas, { cluster: 'big', pods: SIZE.podsPerNode }).filter(
      (ms) => ms !== undefined,
    );
    const lastAt = all.length === SIZE.nodes ? begunAt + Math.max(...all) : undefined;
    const cpu = lastAt === undefined ? undefined : samples.find(({ at }) => at >= lastAt)?.cpu;
    const counts = Object.entries(await server.counts('big')).map(([what, count]) => `${count} ${what}`);
    report(
      inTime(
        {
          ...cpuFigure,
          note: `${all.length} of ${SIZE.nodes} sent, peak ${peak.toFixed(0)} MB; ${counts.join(', ')}`,
        },
        cpu,
        options,
      ),
    );
    report(
      inTime(
        { what: 'until all its deltas are queued', unit: 's' },
        lastAt === undefined ? undefined : (lastAt - begunAt) / 1000,
        options,
      ),
    );
    const duringIt = new Map(
      [...othersTainted].filter(([, at]) => at >= begunAt && at <= (lastAt ?? grewAt)),
    );
    const late = delays(duringIt, deltas, { cluster: 'other', pods: OTHER.podsPerNode });
    const arrived = late.filter((ms) => ms !== undefined);
    report({
      ...lateFigure,
      value: Math.max(...arrived),
      note: `${arrived.length} of ${late.length} sent, p50 ${quantile(arrived, 0.5)} ms`,
    });
  },
};
