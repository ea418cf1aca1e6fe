import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '#test/cluster/rig/figures.ts';
import { inTime, plural, type Scenario } from '../figure.ts';
import { RelayProcess } from '../relay-process.ts';
import { nodeNameOf } from '../server/node-object.ts';
import { SyntheticServer } from '../synthetic-server.ts';
import { delays } from '../taints.ts';

const SIZE = { nodes: 5_000, podsPerNode: 30 };
const ROUNDS = 3;
const STANDBY_MS = 3_000;
const POLL_MS = 100;
const figure = {
  what: 'a relay is killed: until the other’s first right delta',
  unit: 's',
  aim: 18,
} as const;

export const takeover: Scenario = {
  about: 'a relay is killed, a node is tainted, another relay takes over',
  async run(report, options) {
    await using server = await SyntheticServer.start({ c0: SIZE });
    const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-leases-'));
    const leases = join(dir, 'leases.sqlite');
    const start = () => new RelayProcess({ clusters: server.relayed('c0'), leases });
    let holder = start();
    let standby: RelayProcess | undefined;
    try {
      if ((await holder.synced(options.capMs)) === undefined) {
        return report(inTime(figure, undefined, options));
      }
      const seconds: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        standby = start();
        await delay(STANDBY_MS);
        const killedAt = Date.now();
        await holder[Symbol.asyncDispose]();
        await server.command({ kind: 'taint', cluster: 'c0', nodes: [round] });
        [holder, standby] = [standby, undefined];
        const delta = await firstDelta(holder, nodeNameOf(round), killedAt, options.capMs);
        if (delta === undefined) break;
        seconds.push(delta / 1000);
      }
      const note = `median of ${plural(seconds.length, 'round')}, longest ${Math.max(...seconds)} s`;
      report(inTime({ ...figure, note }, quantile(seconds, 0.5), options));
    } finally {
      await holder[Symbol.asyncDispose]();
      await standby?.[Symbol.asyncDispose]();
      rmSync(dir, { recursive: true });
    }
  },
};

/** Returns the milliseconds from `since` to the first correct delta of a node; `undefined`: not in time. */
async function firstDelta(
  relay: RelayProcess,
  node: string,
  since: number,
  withinMs: number,
): Promise<number | undefined> {
  const tainted = new Map([[node, since]]);
  while (Date.now() < since + withinMs) {
    const [ms] = delays(tainted, await relay.query('deltas'), { cluster: 'c0', pods: SIZE.podsPerNode });
    if (ms !== undefined) return ms;
    await delay(POLL_MS);
  }
  return undefined;
}
