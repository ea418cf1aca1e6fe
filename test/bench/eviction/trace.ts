import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { currentContext, readKubeconfig } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { IMAGE_ENV } from '#test/bench/image-env.ts';
import { ServiceProcess } from '#test/cluster/rig/service-process.ts';
import { Population, type Shape } from './population.ts';

const WITHIN_MS = 30_000;
const HOOKS = join(import.meta.dirname, 'trace-hooks.ts');
/** Waits that are shorter than this are none. */
const SHORTEST_WAIT_MS = 0.1;

/** A request or a wait of the service's process; in milliseconds of the wall clock. */
export interface Span {
  readonly name: string;
  readonly begin: number;
  /** `null`: it did not end. */
  readonly end: number | null;
}

/** Spans of one name that overlap. */
interface Row {
  readonly name: string;
  readonly begins: number[];
  readonly ends: number[];
}

/** Evicts the pods of one node in a fresh process; returns each request and wait from the taint to the last delete. */
export async function traced(shape: Shape): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-trace-'));
  const file = join(dir, 'spans.json');
  try {
    await using population = await Population.on(shape);
    const { KUBECONFIG: kubeconfig = '' } = process.env;
    const { pods } = await population.evictedBy(async () => {
      const service = await ServiceProcess.start({
        kubeconfig,
        contexts: [currentContext(readKubeconfig(kubeconfig))],
        stateDir: join(dir, 'state'),
        // Not the bundle: its classes are out of reach.
        program: ['--import', HOOKS, 'functions/service/main.ts'],
        env: { ...IMAGE_ENV, TRACE_FILE: file },
      });
      return { usage: () => undefined, stop: async () => void (await service.stop()) };
    }, WITHIN_MS);
    const taintedAt = Math.min(...pods.map(({ tainted }) => tainted.requestedAt));
    return traceText(JSON.parse(readFileSync(file, 'utf8')) as Span[], taintedAt);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Returns a line for each request and wait from `taintedAt` to the last delete, in milliseconds from the first. */
export function traceText(spans: readonly Span[], taintedAt: number): string {
  const after = spans.filter(({ begin }) => begin >= taintedAt);
  const last = Math.max(
    ...after.map(({ name, end }) => (/^(delete|create) pods/.test(name) ? (end ?? 0) : 0)),
  );
  const rows: Row[] = [];
  for (const { name, begin, end } of after) {
    if (begin > last || end === null || (name.startsWith('wait') && end - begin < SHORTEST_WAIT_MS)) continue;
    const row = rows.findLast((other) => other.name === name);
    if (row && begin <= Math.max(...row.ends)) {
      row.begins.push(begin);
      row.ends.push(end);
    } else rows.push({ name, begins: [begin], ends: [end] });
  }
  const first = Math.min(...rows.flatMap(({ begins }) => begins));
  const range = (times: readonly number[]) =>
    [...new Set([Math.min(...times), Math.max(...times)])].map((at) => (at - first).toFixed(1)).join('–');
  const lines = rows.map(
    ({ name, begins, ends }) =>
      `${String(begins.length).padStart(3)} × ${name.padEnd(36)} ${range(begins).padStart(11)}  to ${range(ends)}`,
  );
  return lines.join('\n');
}
