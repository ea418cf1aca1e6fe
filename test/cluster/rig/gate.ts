import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import type { Connection } from '#shared/kubernetes/http/connection.ts';

/** A client's connection, and the one that was made to the server for it. */
interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

/**
 * Passes TCP connections on to an API server, so that clients speak to it as ever (TLS, HTTP/2), and can break them,
 * hold back what the server says, and let nobody in.
 */
export class Gate {
  readonly #upstream: Connection;
  readonly #to: URL;
  readonly #pairs = new Set<Pair>();
  readonly #listener = net.createServer((client) => this.#enter(client));
  readonly #stalled = new Set<Pair>();
  #shut = false;
  /** What lets everything that is frozen go on; `undefined`: nothing is frozen. */
  #thaws: (() => void)[] | undefined;

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

  /** The upstream connection, through here. */
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

  /** Breaks the chosen connections. */
  cut(chosen: () => boolean): void {
    for (const { client, server } of [...this.#pairs].filter(chosen)) {
      client.destroy();
      server.destroy();
    }
  }

  /** Holds back what the server says on the chosen connections; returns what lets it go on. */
  stall(chosen: () => boolean): () => void {
    const stalled = [...this.#pairs].filter((pair) => !this.#stalled.has(pair) && chosen());
    for (const pair of stalled) {
      this.#stalled.add(pair);
      pair.server.unpipe(pair.client);
    }
    return () => {
      for (const pair of stalled) {
        this.#stalled.delete(pair);
        pair.server.pipe(pair.client);
      }
    };
  }

  /** Holds back what the server says on all connections, and on those that come; returns what lets it go on. */
  freeze(): () => void {
    const thaws = [this.stall(() => true)];
    this.#thaws = thaws;
    return () => {
      this.#thaws = undefined;
      for (const thaw of thaws) thaw();
    };
  }

  /** Breaks all connections, and those that are tried from now on; returns what ends that. */
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
      // What ends one end ends the other; the client tells what it means.
      one.on('error', () => undefined);
      one.once('close', () => {
        other.destroy();
        this.#pairs.delete(pair);
      });
    }
    // All others are stalled.
    this.#thaws?.push(this.stall(() => true));
  }
}
