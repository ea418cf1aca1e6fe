import type { ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import {
  type ClusterFacts,
  connectionStatusOf,
  type FleetFacts,
  issuesOf,
} from '#shared/conditions/conditions.ts';
import { defined } from '#shared/defined.ts';
import type { ClusterRelayState } from '#shared/engine/watch/cluster-state.ts';
import type { TripReport } from '#shared/eviction/guard.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { type Listener, type ListenerLog, openListener } from '#shared/http/listener.ts';
import type { Fault } from '#shared/state/fault.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { type Stopwatch, systemClock, systemStopwatch } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';

/** A process's state for a cluster; `access-denied`: its credentials are rejected, and it tries again. */
export type ClusterState = ClusterRelayState | { readonly kind: 'access-denied' };

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
  readonly states: () => ReadonlyMap<ClusterName, ClusterState>;
  readonly trips: () => ReadonlyMap<ClusterName, readonly TripReport[]>;
  /** The faults of the clusters whose lease this process holds. */
  readonly faults: () => ReadonlyMap<ClusterName, readonly Fault[]>;
  /** Returns why the registered clusters are not known. Absent: this process reads no registry. */
  readonly registryError?: () => unknown;
  readonly log: ListenerLog;
  readonly stopwatch?: Stopwatch;
}

/**
 * Serves `/healthz` (200 while the process answers), `/readyz` and `/metrics` (Prometheus). Rejects with
 * `ProbeAddressError`.
 *
 * `/readyz` is 503 while a cluster is not listed yet, or the registered clusters are not known. It is also 503 if this
 * process holds leases, but none of their clusters is connected and can be evicted from. A single such cluster among
 * others is reported and raises an alarm, but doesn't keep a new release from starting. A process on standby is ready. The
 * answer has a line for each condition, in Kubernetes' form; with `?verbose`, for every cluster.
 */
export async function startProbeServer(
  { host, port, setBy }: ProbeAddress,
  { registry, log, stopwatch = systemStopwatch, ...reported }: ProbeDeps,
): Promise<Listener> {
  const metrics = renderedEachSecond(registry, stopwatch);
  const serve = async (response: ServerResponse, { pathname, searchParams }: URL): Promise<void> => {
    switch (pathname) {
      case '/healthz':
        return answer(response, 200, 'ok\n');
      case '/readyz': {
        const at = systemClock.now();
        const [clusters, unread] = [clustersIn(reported, at), reported.registryError?.()];
        const ready = unread === undefined && isReady(clusters);
        const registryError = unread === undefined ? undefined : errorMessage(unread);
        const facts = { at, clusters, ...defined({ registryError }) };
        const text = readyText(facts, ready, searchParams.has('verbose'));
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

function isReady(clusters: readonly ClusterFacts[]): boolean {
  const held = clusters.filter(
    (each) => each.service && (each.service.state !== 'standby' || isStopped(each)),
  );
  if (held.some(({ service }) => service?.state === 'syncing')) return false;
  return held.length === 0 || held.some((each) => each.service?.state === 'live' && !isStopped(each));
}

const isStopped = ({ faults = [] }: ClusterFacts): boolean => faults.some(stopsEvictions);

/** An API server that doesn't answer may recover by itself; other faults must be fixed. */
const stopsEvictions = ({ type, status }: Fault): boolean =>
  type.endsWith('-unavailable') || type === 'store-failing' || status === 401 || status === 403;

function readyText(facts: FleetFacts, ready: boolean, isVerbose: boolean): string {
  const issues = Map.groupBy(issuesOf(facts), ({ cluster }) => cluster);
  const failedIn = (name?: ClusterName): readonly string[] =>
    (issues.get(name) ?? []).map(({ type, message, since }) => {
      const when = since === undefined ? '' : ` Since ${timeText(since)}.`;
      return `[-]${name === undefined ? '' : `${name}/`}${type} failed: ${message}${when}\n`;
    });
  const lines = facts.clusters.flatMap((each): readonly string[] => {
    const { cluster: name, service } = each;
    const state = service?.state;
    if (state === 'syncing')
      return [`[-]${name}/syncing failed: It has not been listed yet.\n`, ...failedIn(name)];
    const isFine = isVerbose && (state === 'live' || state === 'standby') && !isStopped(each);
    return [...(isFine ? [`[+]${name}/${state} ok\n`] : []), ...failedIn(name)];
  });
  return [
    ...failedIn(),
    ...lines,
    ...(isVerbose ? [`readyz check ${ready ? 'passed' : 'failed'}\n`] : []),
  ].join('');
}

/** What this process knows of the clusters whose leases it holds, or waits for. */
function clustersIn(
  { states, trips, faults }: Pick<ProbeDeps, 'states' | 'trips' | 'faults'>,
  at: EpochMs,
): readonly ClusterFacts[] {
  const [all, tripped, found] = [states(), trips(), faults()];
  return [...new Set([...all.keys(), ...found.keys(), ...tripped.keys()])].map((cluster) => ({
    cluster,
    trips: tripped.get(cluster) ?? [],
    faults: found.get(cluster) ?? [],
    ...stateFacts(all.get(cluster), at),
  }));
}

function stateFacts(state: ClusterState | undefined, at: EpochMs): Omit<ClusterFacts, 'cluster'> {
  if (!state) return {};
  const service = { state: state.kind, breakerOpen: 'breakerOpen' in state };
  if (state.kind === 'live') return { service, connection: 'connected' };
  if (state.kind !== 'disconnected') return { service };
  const { lastContactAt } = state;
  const connection = connectionStatusOf(lastContactAt, at);
  return { service, connection, ...defined({ lastContactAt }), holder: 'The relay', renewedAt: at };
}

function answer(
  response: ServerResponse,
  status: number,
  body: string,
  type = 'text/plain; charset=utf-8',
): void {
  response.writeHead(status, { 'content-type': type }).end(body);
}
