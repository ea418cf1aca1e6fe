import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import type { Connection } from '#shared/kubernetes/http/connection.ts';

/** A client's connection, and the connection to the server that was opened for it. */
interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

/**
 * Forwards TCP connections to an API server, so that clients keep their protocols (TLS, HTTP/2). It can break
 * connections, hold back the server's data, and reject new connections.
 */
export class Gate {
  readonly #upstream: Connection;
  readonly #to: URL;
  readonly #pairs = new Set<Pair>();
  readonly #listener = net.createServer((client) => this.#enter(client));
  readonly #stalled = new Set<Pair>();
  #shut = false;
  /** The bytes that clients with closed connections received. */
  #delivered = 0;
  /** Stalls all connections that are not stalled yet; `undefined`: nothing is frozen. */
  #stallAll: (() => () => void) | undefined;
  /** The functions that resume all frozen connections. */
  #thaws: (() => void)[] = [];

  private constructor(upstream: Connection, to: URL) {
    this.#upstream = upstream;
    this.#to = to;
  }

  static async open(upstream: Connection): Promise<Gate> {
    const gate = new Gate(upstream, (await upstream.requestOptions()).server);
    gate.#listener.listen(0, '127.0.0.1');
    await once(gate.#listener, 'listening');
    return gate;
  }

  /** The upstream connection, through this gate. */
  get connection(): Connection {
    const { port } = this.#listener.address() as AddressInfo;
    const server = new URL(this.#to);
    server.host = `127.0.0.1:${port}`;
    return {
      host: this.#upstream.host,
      requestOptions: async () => {
        const access = await this.#upstream.requestOptions();
        return { ...access, server, servername: access.servername ?? this.#to.hostname };
      },
    };
  }

  /** The bytes of the API server that all clients received so far: it grows with each answer. */
  get delivered(): number {
    return [...this.#pairs].reduce((sum, { client }) => sum + client.bytesWritten, this.#delivered);
  }

  /** Breaks the chosen connections. */
  cut(chosen: () => boolean): void {
    for (const { client, server } of [...this.#pairs].filter(chosen)) {
      client.destroy();
      server.destroy();
    }
  }

  /** Holds back the server's data on the chosen connections. Returns a function that resumes them. */
  stall(chosen: () => boolean): () => void {
    return this.#stall(chosen, ({ client, server }) => [[server, client]]);
  }

  /** Holds back the server's data on all connections, present and new. Returns a function that resumes them. */
  freeze(): () => void {
    return this.#freeze(() => this.stall(() => true));
  }

  /** Holds back all data, as if the server were suspended. Returns a function that resumes all connections. */
  hang(): () => void {
    return this.#freeze(() =>
      this.#stall(
        () => true,
        ({ client, server }) => [
          [server, client],
          [client, server],
        ],
      ),
    );
  }

  /**
   * Breaks all connections, and refuses new ones: nothing listens on the port. Returns a function that ends the outage.
   */
  async refuse(): Promise<() => Promise<void>> {
    const { port } = this.#listener.address() as AddressInfo;
    const closed = once(this.#listener, 'close');
    this.#listener.close();
    this.cut(() => true);
    await closed;
    return async () => {
      this.#listener.listen(port, '127.0.0.1');
      await once(this.#listener, 'listening');
    };
  }

  /** Breaks all connections, and new ones as they come. Returns a function that ends the outage. */
  shut(): () => void {
    this.#shut = true;
    this.cut(() => true);
    return () => {
      this.#shut = false;
    };
  }

  async close(): Promise<void> {
    this.shut();
    this.#listener.close();
    await once(this.#listener, 'close');
  }

  #stall(chosen: () => boolean, ways: (pair: Pair) => readonly (readonly [Socket, Socket])[]): () => void {
    const stalled = [...this.#pairs].filter((pair) => !this.#stalled.has(pair) && chosen());
    for (const pair of stalled) {
      this.#stalled.add(pair);
      for (const [from, to] of ways(pair)) from.unpipe(to);
    }
    return () => {
      for (const pair of stalled) {
        this.#stalled.delete(pair);
        for (const [from, to] of ways(pair)) from.pipe(to);
      }
    };
  }

  #freeze(stallAll: () => () => void): () => void {
    this.#stallAll = stallAll;
    this.#thaws = [stallAll()];
    return () => {
      for (const thaw of this.#thaws) thaw();
      this.#stallAll = undefined;
      this.#thaws = [];
    };
  }

  #enter(client: Socket): void {
    if (this.#shut) {
      client.destroy();
      return;
    }
    const server = net.connect({
      host: this.#to.hostname,
      port: Number(this.#to.port) || 443,
      noDelay: true,
    });
    const pair = { client, server };
    this.#pairs.add(pair);
    client.setNoDelay(true);
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.pipe(other);
      // The end of either socket ends the other; the client reports the error.
      one.on('error', () => undefined);
      one.once('close', () => {
        other.destroy();
        if (this.#pairs.delete(pair)) this.#delivered += client.bytesWritten;
      });
    }
    // All other connections are stalled.
    if (this.#stallAll) this.#thaws.push(this.#stallAll());
  }
}
