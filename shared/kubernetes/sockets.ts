import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';

/** TCP and TLS. Whoever takes longer is not there, or too busy for the calls that would follow. */
const CONNECT_TIMEOUT_MS = 3_000;
/** Idle connections go before servers (90 s) and load balancers (60 s) cut them, perhaps under a request. */
const IDLE_MS = 30_000;

/**
 * Connections to one server, kept for the next request. A request gets its socket only when that is connected, so
 * that it knows when it is sent; one given up before then leaves the connection to the next.
 */
export class Sockets {
  readonly #plain: http.Agent;
  readonly #tls: https.Agent;
  readonly #connecting = new Set<Socket>();

  constructor(atMost = Number.POSITIVE_INFINITY) {
    const options: https.AgentOptions = { keepAlive: true, maxSockets: atMost, timeout: IDLE_MS };
    this.#plain = this.#whenConnected(new http.Agent(options), 'connect');
    this.#tls = this.#whenConnected(new https.Agent(options), 'secureConnect');
  }

  agentFor({ protocol }: URL): http.Agent {
    return protocol === 'https:' ? this.#tls : this.#plain;
  }

  /** Ends all connections. */
  close(): void {
    this.#plain.destroy();
    this.#tls.destroy();
    for (const socket of this.#connecting) socket.destroy(new Error('the connections were closed'));
  }

  #whenConnected<A extends http.Agent>(agent: A, connected: 'connect' | 'secureConnect'): A {
    const connect = agent.createConnection.bind(agent);
    agent.createConnection = (options, callback) => {
      const socket = connect(options) as Socket;
      this.#connecting.add(socket);
      const timer = setTimeout(() => socket.destroy(new ConnectTimeoutError()), CONNECT_TIMEOUT_MS);
      const settle = (error?: Error): void => {
        clearTimeout(timer);
        this.#connecting.delete(socket);
        // Its type wants a socket with an error, too.
        callback?.(error ?? null, socket);
      };
      socket.once(connected, () => settle());
      socket.once('error', settle);
      // A socket that is given out as an answer, too, would be given out twice.
      return undefined;
    };
    return agent;
  }
}

class ConnectTimeoutError extends Error {
  readonly code = 'ETIMEDOUT';
  constructor() {
    super(`no connection within ${CONNECT_TIMEOUT_MS / 1000} s`);
  }
}
