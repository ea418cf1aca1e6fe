import { setTimeout as delay } from 'node:timers/promises';
import { inTime, type Scenario } from '../figure.ts';
import { RelayProcess } from '../relay-process.ts';
import { SyntheticServer } from '../synthetic-server.ts';

const SIZE = { nodes: 5_000, podsPerNode: 30 };
const TAINTED = Array.from({ length: 100 }, (_, index) => index * 50);
const POD_EVENTS_PER_SECOND = 180;
const SETTLE_MS = 8_000;
const WINDOW_MS = 20_000;

export const present: Scenario = {
  about: '100 nodes stay tainted while pods come and go in the whole cluster',
  async run(report, options) {
    await using server = await SyntheticServer.start({ c0: SIZE });
    await using relay = new RelayProcess({ clusters: server.relayed('c0') });
    const figure = {
      what: '100 nodes tainted, 180 pod events/s in the cluster',
      unit: '% of a core',
      aim: 0.5,
    } as const;
    if ((await relay.synced(options.capMs)) === undefined) return report(inTime(figure, undefined, options));
    const share = async () => {
      await delay(SETTLE_MS);
      const before = relay.process.cpuSeconds;
      await delay(WINDOW_MS);
      return ((relay.process.cpuSeconds - before) / WINDOW_MS) * 100_000;
    };
    await server.command({ kind: 'taint', cluster: 'c0', nodes: TAINTED });
    const quiet = await share();
    await server.command({ kind: 'churn', cluster: 'c0', perSecond: POD_EVENTS_PER_SECOND });
    const busy = await share();
    report({ ...figure, value: busy, note: `${quiet.toFixed(1)} % without pod events` });
  },
};
