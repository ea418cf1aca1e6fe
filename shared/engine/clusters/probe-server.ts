import type { ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import type { ClusterRelayState } from '#shared/engine/watch/cluster-state.ts';
import { reportOf, tripText } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import { type Listener, type ListenerLog, openListener } from '#shared/http/listener.ts';
import type { Fault } from '#shared/state/fault.ts';
import { type Stopwatch, systemStopwatch } from '#shared/time/clock.ts';

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
  /** The faults of the clusters whose lease this process holds; absent: it doesn't detect faults. */
  readonly faults?: () => ReadonlyMap<ClusterName, readonly Fault[]>;
  readonly log: ListenerLog;
  readonly stopwatch?: Stopwatch;
}

/**
 * Serves `/healthz` (200 while the process answers), `/readyz` and `/metrics` (Prometheus). Rejects with
 * `ProbeAddressError`.
 *
 * `/readyz` is 503 while a cluster is not listed yet. It is also 503 if this process holds leases, but none of their
 * clusters is connected and can be evicted from. A single such cluster among others is reported and raises an alarm,
 * but doesn't keep a new release from starting. A process on standby is ready. The answer has a line for each unhealthy
 * cluster, each fault, and each guard trip; with `?verbose`, for every cluster.
 */
export async function startProbeServer(
  { host, port, setBy }: ProbeAddress,
  { registry, states, trips, faults = () => new Map(), log, stopwatch = systemStopwatch }: ProbeDeps,
): Promise<Listener> {
  const metrics = renderedEachSecond(registry, stopwatch);
  const serve = async (response: ServerResponse, { pathname, searchParams }: URL): Promise<void> => {
    switch (pathname) {
      case '/healthz':
        return answer(response, 200, 'ok\n');
      case '/readyz': {
        const all = [...states()];
        const unwell = all.filter(([, { kind }]) => kind !== 'standby' && kind !== 'live');
        const shown = searchParams.has('verbose') ? all : unwell;
        const held = [...trips()].flatMap(([name, clusterTrips]) =>
          clusterTrips.map((trip) => `${name} ${tripInWords(trip)}\n`),
        );
        const found = faults();
        const wrong = [...found].flatMap(([name, clusterFaults]) =>
          clusterFaults.map((fault) => `${name} ${faultInWords(fault)}\n`),
        );
        const stands = shown.map(([name, state]) => `${name} ${inWords(state)}\n`);
        const text = [...stands, ...wrong, ...held].join('');
        return answer(response, isReady(all, found) ? 200 : 503, text || 'ok\n');
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

function faultInWords({ type, resource, since, error }: Fault): string {
  const what = resource === undefined ? type : `${type} of ${resource}`;
  return `${what} since ${new Date(since).toISOString()}: ${error}`;
}

function inWords(state: ProbedState): string {
  return state.kind === 'disconnected'
    ? `disconnected since ${new Date(state.since).toISOString()}`
    : state.kind;
}

const tripInWords = (trip: Trip): string =>
  `guard tripped at ${new Date(trip.trippedAt).toISOString()}: ${tripText(reportOf(trip))}`;

function answer(
  response: ServerResponse,
  status: number,
  body: string,
  type = 'text/plain; charset=utf-8',
): void {
  response.writeHead(status, { 'content-type': type }).end(body);
}
