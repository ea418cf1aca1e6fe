import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { ClusterRelayState } from './cluster-relay.ts';

/** The probes' port cannot be used. */
export class ProbePortError extends Error {
  override readonly name = 'ProbePortError';
}

export interface ProbeServer {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves `/healthz` (200 while the process answers), `/readyz` (503 while a cluster this relay speaks for is not
 * synced, with a line for each cluster) and `/metrics` (Prometheus). Rejects with `ProbePortError`.
 */
export async function startProbeServer(
  address: { readonly host: string; readonly port: number },
  registry: Registry,
  states: () => ReadonlyMap<ClusterName, ClusterRelayState>,
): Promise<ProbeServer> {
  const server = createServer((request, response) => {
    switch (request.url) {
      case '/healthz':
        return answer(response, 200, 'ok\n');
      case '/readyz': {
        const lines = [...states()].map(([cluster, state]) => `${cluster} ${state}\n`);
        const ready = [...states().values()].every((state) => state !== 'syncing');
        return answer(response, ready ? 200 : 503, lines.join(''));
      }
      case '/metrics':
        return void registry.metrics().then(
          (text) => answer(response, 200, text, registry.contentType),
          (error: unknown) => answer(response, 500, `${String(error)}\n`),
        );
      default:
        return answer(response, 404, 'there are /healthz, /readyz and /metrics\n');
    }
  });
  server.listen(address.port, address.host);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new ProbePortError(
      `cannot serve health and metrics on ${address.host}:${address.port} (${(error as NodeJS.ErrnoException).code}): free that port or choose another with --port`,
    );
  }
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function answer(
  response: ServerResponse,
  status: number,
  body: string,
  type = 'text/plain; charset=utf-8',
): void {
  response.writeHead(status, { 'content-type': type }).end(body);
}
