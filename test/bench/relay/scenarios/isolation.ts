import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '#test/cluster/rig/figures.ts';
import { type BenchOptions, type Figure, inTime, type Scenario } from '../figure.ts';
import { RelayProcess } from '../relay-process.ts';
import type { RelayedCluster } from '../relay-questions.ts';
import { SyntheticServer } from '../synthetic-server.ts';
import { delays, taintInTurn } from '../taints.ts';

const SIZE = { nodes: 500, podsPerNode: 30 };
const TAINTS = 100;
const EVERY_MS = 75;
const AIM_MS = 100;
/** The time until the trouble is in progress. */
const SPREAD_MS = 500;
/** A delta that was not sent by then counts as never sent. */
const LATE_MS = 10_000;
/** More than getaddrinfo's threads in a process. */
const NAMELESS = 8;
const DNS_PORT = 53;
const DNS_ADDRESS = '127.0.0.53';

const TROUBLES: Readonly<Record<string, (hostile: SyntheticServer) => Promise<unknown>>> = {
  'nothing wrong': async () => undefined,
  'an endless line': (hostile) =>
    hostile.command({ kind: 'faults', cluster: 'hostile', faults: { speech: 'endless-line' } }),
  'a storm of node events': (hostile) => hostile.command({ kind: 'storm', cluster: 'hostile', on: true }),
  silence: async (hostile) => {
    await hostile.command({ kind: 'faults', cluster: 'hostile', faults: { speech: 'silent' } });
    await hostile.command({ kind: 'cut-watches', cluster: 'hostile' });
  },
};

export const isolation: Scenario = {
  about: 'how late a healthy cluster’s taints are while another one is in trouble',
  async run(report, options) {
    for (const [name, begin] of Object.entries(TROUBLES)) {
      await using hostile = await SyntheticServer.start({ hostile: SIZE });
      await beside(name, hostile.relayed('hostile'), report, options, () => begin(hostile));
    }
    await besideDeadDns(report, options);
  },
};

/**
 * Measures taints of a healthy cluster while the trouble lasts. The other clusters must be synced first unless they
 * never will be.
 */
async function beside(
  trouble: string,
  others: readonly RelayedCluster[],
  report: (figure: Figure) => void,
  options: BenchOptions & { readonly resolvConf?: string },
  begin?: () => Promise<unknown>,
): Promise<void> {
  await using server = await SyntheticServer.start({ healthy: SIZE });
  const { resolvConf } = options;
  await using relay = new RelayProcess({
    clusters: [...others, ...server.relayed('healthy')],
    ...(resolvConf === undefined ? {} : { resolvConf }),
  });
  const figure = { what: `healthy cluster’s taint beside ${trouble}`, unit: 'ms' } as const;
  const synced = await relay.synced(options.capMs, begin === undefined ? ['healthy'] : undefined);
  if (synced === undefined) return report(inTime({ ...figure, aim: AIM_MS }, undefined, options));
  const start = `start of the process to a healthy cluster synced beside ${trouble}`;
  if (begin === undefined) report({ what: start, value: synced / 1000, unit: 's' });
  await begin?.();
  await delay(SPREAD_MS);
  const goOn = (done: number) => done < TAINTS && !relay.process.ended;
  const tainted = await taintInTurn(server, { cluster: 'healthy', everyMs: EVERY_MS, goOn });
  const untilAt = Date.now() + LATE_MS;
  const seen: Awaited<ReturnType<typeof deltasOf>>[number][] = [];
  let arrived: number[] = [];
  while (arrived.length < tainted.size && Date.now() < untilAt && !relay.process.ended) {
    seen.push(...(await deltasOf(relay)));
    arrived = delays(tainted, seen, { cluster: 'healthy', pods: SIZE.podsPerNode }).filter(
      (ms) => ms !== undefined,
    );
    await delay(200);
  }
  const end = relay.process.ended ? ', the relay died' : '';
  const note = `${arrived.length} of ${tainted.size} sent${end}, longest ${Math.max(...arrived)} ms, resident ${relay.process.rssMb.toFixed(0)} MB`;
  report({
    ...figure,
    what: `${figure.what}, p99`,
    ...(arrived.length > 0 ? { value: quantile(arrived, 0.99) } : {}),
    aim: AIM_MS,
    note,
  });
}

/** Returns the deltas that a relay sent; an empty list when it does not answer. */
const deltasOf = (relay: RelayProcess) =>
  Promise.race([relay.query('deltas').catch(() => []), delay(LATE_MS, [])]);

/** Measures a healthy cluster beside clusters whose DNS server never answers. */
async function besideDeadDns(report: (figure: Figure) => void, options: BenchOptions): Promise<void> {
  const trouble = `${NAMELESS} clusters whose DNS never answers`;
  const dns = createSocket('udp4');
  const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-dns-'));
  try {
    dns.bind(DNS_PORT, DNS_ADDRESS);
    await once(dns, 'listening');
    const resolvConf = join(dir, 'resolv.conf');
    writeFileSync(resolvConf, `nameserver ${DNS_ADDRESS}\n`);
    const nameless = Array.from({ length: NAMELESS }, (_, index) => ({
      name: `nameless-${index}`,
      url: `https://api-${index}.example.com:6443`,
      certificate: '',
    }));
    await beside(trouble, nameless, report, { ...options, resolvConf });
  } catch (error) {
    const note = `not measured: ${(error as Error).message}; it takes root and a free port ${DNS_PORT}`;
    report({ what: `healthy cluster’s taint beside ${trouble}`, unit: 'ms', aim: AIM_MS, note });
  } finally {
    dns.close();
    rmSync(dir, { recursive: true });
  }
}
