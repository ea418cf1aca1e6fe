import { inTime, type Scenario } from '../figure.ts';
import { RelayProcess } from '../relay-process.ts';
import { SyntheticServer } from '../synthetic-server.ts';

const CLUSTERS = Array.from({ length: 24 }, (_, index) => `c${index}`);
const SIZE = { nodes: 500, podsPerNode: 30 };

export const fleet: Scenario = {
  about: '24 clusters at once on a quarter of a core',
  async run(report, options) {
    await using server = await SyntheticServer.start(
      Object.fromEntries(CLUSTERS.map((name) => [name, SIZE])),
    );
    await using relay = new RelayProcess({ clusters: server.relayed(...CLUSTERS), cores: 0.25 });
    const synced = await relay.synced(options.capMs);
    const rss = `resident ${relay.process.rssMb.toFixed(0)} MB`;
    const live = synced === undefined ? Object.keys(await relay.query('live')).length : CLUSTERS.length;
    const figure = {
      what: 'start of the process to 24 clusters of 500 nodes, 15,000 pods synced, a quarter core',
      unit: 's',
      aim: 20,
      note: `${live} of 24 synced, ${rss}`,
    } as const;
    report(inTime(figure, synced === undefined ? undefined : synced / 1000, options));
  },
};
