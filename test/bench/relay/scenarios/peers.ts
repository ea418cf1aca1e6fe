import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { bundled } from '../bundled.ts';
import { type BenchOptions, type Figure, inTime, type Scenario } from '../figure.ts';
import { MeasuredProcess } from '../measured-process.ts';
import { SyntheticServer } from '../synthetic-server.ts';

const SIZE = { nodes: 5_000, podsPerNode: 30 };
const SETTLE_MS = 5_000;
/** Node's own limit is too little for 150,000 pods as this library keeps them. */
const PEER_HEAP_MB = 12_000;

/** Each takes a URL and a certificate, and says `synced` on a line when it knows all nodes and pods. */
export const peers: Scenario = {
  about: 'what keeps all nodes and pods: informers of client-node and client-go',
  async run(tell, options) {
    const informer = bundled('test/bench/relay/peers/client-node-informer.ts');
    const heap = `--max-old-space-size=${PEER_HEAP_MB}`;
    await measure('client-node informer', [process.execPath, heap, informer], tell, options);
    await goInformer(tell, options);
  },
};

async function goInformer(tell: (figure: Figure) => void, options: BenchOptions): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-bench-go-'));
  try {
    const program = join(dir, 'informer');
    const cwd = join(import.meta.dirname, '../peers/go');
    try {
      execFileSync('go', ['build', '-o', program, '.'], { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
    } catch (error) {
      const note = `skipped: go build failed (${(error as Error).message.split('\n')[0]})`;
      return tell({ what: 'client-go informer: resident', unit: 'MB', note });
    }
    await measure('client-go informer', [program], tell, options);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

async function measure(
  name: string,
  [command = '', ...args]: readonly string[],
  tell: (figure: Figure) => void,
  options: BenchOptions,
): Promise<void> {
  await using server = await SyntheticServer.start({ c0: SIZE });
  const peer = new MeasuredProcess(command, [...args, server.url('c0'), server.certificate]);
  try {
    const out = createInterface(peer.child.stdout ?? process.stdin);
    const synced = new Promise<number | undefined>((resolve) => {
      out.on('line', (line) => line === 'synced' && resolve(Date.now() - peer.startedAt));
      out.once('close', () => resolve(undefined));
    });
    const took = await Promise.race([synced, delay(options.capMs, undefined)]);
    const cpu = peer.cpuSeconds;
    await delay(SETTLE_MS);
    const size = '5,000 nodes, 150,000 pods';
    const end = peer.ended ? 'it died' : undefined;
    const seconds = took === undefined ? undefined : took / 1000;
    tell(
      inTime(
        { what: `${name}: start to synced, ${size}`, unit: 's', note: end ?? `CPU ${cpu.toFixed(1)} s` },
        seconds,
        options,
      ),
    );
    const note = `${took === undefined ? 'not synced; ' : ''}peak ${peer.peakMb.toFixed(0)} MB`;
    const rss = peer.rssMb;
    tell({
      what: `${name}: resident, ${size}`,
      unit: 'MB',
      note: end ?? note,
      ...(Number.isNaN(rss) ? {} : { value: rss }),
    });
  } finally {
    await peer.kill();
  }
}
