import type { ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import { type ClusterFacts, connectionStatusOf, issuesOf } from '#shared/conditions/conditions.ts';
import { defined } from '#shared/defined.ts';
import type { ClusterRelayState } from '#shared/engine/watch/cluster-state.ts';
import { reportOf } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import { type Listener, type ListenerLog, openListener } from '#shared/http/listener.ts';
import type { Fault } from '#shared/state/fault.ts';
import { type Stopwatch, systemClock, systemStopwatch } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';

/** A process's state for a cluster; `access-denied`: its credentials are rejected, and it tries again. */
export type ClusterState = ClusterRelayState | { readonly kind: 'access-denied' };

/** `lease-unavailable`: the lease can be neither read nor renewed. `queue-unavailable`: due evictions don't arrive. */
export type ProbedState = ClusterState | { readonly kind: 'lease-unavailable' | 'queue-unavailable' };

/** The probes can't be served at their address; the message names the setting and the fix. */
export class ProbeAddressError extends Error {
  override readonly name = 'ProbeAddressError';
}

export interface ProbeAddress {
  readonly host: string;
  readonly port: number;
  /** The settings by which an operator sets the address. */
  readonly setBy: { readonly host: string; readonly port: string };
}

/** Minimum time between renderings of the metrics, however many requests there are. */
export const RENDERED_EACH_MS = 1_000;

export interface ProbeDeps {
  readonly registry: Registry;
  readonly states: () => ReadonlyMap<ClusterName, ProbedState>;
  readonly trips: () => ReadonlyMap<ClusterName, readonly Trip[]>;
  /** The faults of the clusters whose lease this process holds. */
  readonly faults: () => ReadonlyMap<ClusterName, readonly Fault[]>;
  readonly log: ListenerLog;
  readonly stopwatch?: Stopwatch;
}

/**
 * Serves `/healthz` (200 while the process answers), `/readyz` and `/metrics` (Prometheus). Rejects with
 * `ProbeAddressError`.
 *
 * `/readyz` is 503 while a cluster is not listed yet. It is also 503 if this process holds leases, but none of their
 * clusters is connected and can be evicted from. A single such cluster among others is reported and raises an alarm,
 * but doesn't keep a new release from starting. A process on standby is ready. The answer has a line for each condition,
 * in Kubernetes' form; with `?verbose`, for every cluster.
 */
export async function startProbeServer(
  { host, port, setBy }: ProbeAddress,
  { registry, states, trips, faults, log, stopwatch = systemStopwatch }: ProbeDeps,
): Promise<Listener> {
  const metrics = renderedEachSecond(registry, stopwatch);
  const serve = async (response: ServerResponse, { pathname, searchParams }: URL): Promise<void> => {
    switch (pathname) {
      case '/healthz':
        return answer(response, 200, 'ok\n');
      case '/readyz': {
        const [all, found] = [states(), faults()];
        const ready = isReady([...all], found);
        const text = readyText({ all, trips: trips(), found, ready }, searchParams.has('verbose'));
        return answer(response, ready ? 200 : 503, text || 'ok\n');
      }
      case '/metrics':
        return metrics().then(
          (text) => answer(response, 200, text, registry.contentType),
          (error: unknown) => answer(response, 500, `${String(error)}\n`),
        );
      default:
        return answer(response, 404, 'Not found. Available paths: /healthz, /readyz, /metrics\n');
    }
  };
  try {
    return await openListener({
      name: 'probes',
      at: { host, port },
      names: [host, hostname()].map((name) => name.toLowerCase()),
      log,
      serve: (_, response, { url }) => serve(response, url),
    });
  } catch (error) {
    throw new ProbeAddressError(refusal({ host, port, setBy }, (error as NodeJS.ErrnoException).code));
  }
}

/** Renders at most once a second; all callers within that second get the same text or error. */
function renderedEachSecond(registry: Registry, stopwatch: Stopwatch): () => Promise<string> {
  let rendered: { readonly atMs: number; readonly text: Promise<string> } | undefined;
  return () => {
    const atMs = stopwatch();
    if (!rendered || atMs - rendered.atMs >= RENDERED_EACH_MS) rendered = { atMs, text: registry.metrics() };
    return rendered.text;
  };
}

function refusal({ host, port, setBy }: ProbeAddress, code = ''): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} of ${host} is in use (${code}): stop who has it, or choose another with ${setBy.port}`;
    case 'EACCES':
      return `port ${port} is not for this user (${code}): choose one above 1023 with ${setBy.port}`;
    default:
      return `${host} is not an address of this machine (${code}): specify one with ${setBy.host}, such as 127.0.0.1 or 0.0.0.0`;
  }
}

function isReady(
  all: readonly (readonly [ClusterName, ProbedState])[],
  faults: ReadonlyMap<ClusterName, readonly Fault[]>,
): boolean {
  const held = all.filter(([, { kind }]) => kind !== 'standby');
  if (held.some(([, { kind }]) => kind === 'syncing')) return false;
  const works = ([name, { kind }]: (typeof held)[number]) =>
    kind === 'live' && !faults.get(name)?.some(stopsEvictions);
  return held.length === 0 || held.some(works);
}

/** An API server that doesn't answer may recover by itself; other faults must be fixed. */
const stopsEvictions = ({ type, status }: Fault): boolean =>
  type === 'store-failing' || status === 401 || status === 403;

interface Probed {
  readonly all: ReadonlyMap<ClusterName, ProbedState>;
  readonly trips: ReadonlyMap<ClusterName, readonly Trip[]>;
  readonly found: ReadonlyMap<ClusterName, readonly Fault[]>;
  readonly ready: boolean;
}

function readyText({ all, trips, found, ready }: Probed, isVerbose: boolean): string {
  const at = systemClock.now();
  const clusters = [...new Set([...all.keys(), ...found.keys(), ...trips.keys()])].map((name) =>
    factsOf(name, all.get(name), trips.get(name) ?? [], found.get(name) ?? [], at),
  );
  const issues = Map.groupBy(issuesOf({ at, clusters }), ({ cluster }) => cluster);
  const lines = clusters.flatMap(({ cluster: name, service }): readonly string[] => {
    const failed = issues.get(name)?.map(({ type, message, since }) => {
      const when = since === undefined ? '' : ` Since ${timeText(since)}.`;
      return `[-]${name}/${type} failed: ${message}${when}\n`;
    });
    const state = service?.state;
    if (state === 'syncing')
      return [`[-]${name}/syncing failed: It has not been listed yet.\n`, ...(failed ?? [])];
    const isFine = isVerbose && (state === 'live' || state === 'standby');
    return [...(isFine ? [`[+]${name}/${state} ok\n`] : []), ...(failed ?? [])];
  });
  return [...lines, ...(isVerbose ? [`readyz check ${ready ? 'passed' : 'failed'}\n`] : [])].join('');
}

/** What this process knows of a cluster whose lease it holds, or waits for. */
const factsOf = (
  cluster: ClusterName,
  state: ProbedState | undefined,
  trips: readonly Trip[],
  faults: readonly Fault[],
  at: EpochMs,
): ClusterFacts => ({
  cluster,
  ...(state ? { service: { state: state.kind, breakerOpen: 'breakerOpen' in state } } : {}),
  trips: trips.map(reportOf),
  faults,
  ...(state?.kind === 'live' ? { connection: 'connected' } : {}),
  ...(state?.kind === 'disconnected'
    ? {
        connection: connectionStatusOf(state.lastContactAt, at),
        ...defined({ lastContactAt: state.lastContactAt }),
        holder: 'The relay',
        renewedAt: at,
      }
    : {}),
});

function answer(
  response: ServerResponse,
  status: number,
  body: string,
  type = 'text/plain; charset=utf-8',
): void {
  response.writeHead(status, { 'content-type': type }).end(body);
}
