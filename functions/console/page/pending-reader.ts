import type { PendingPage } from '#shared/console/api.ts';

/** Reads all pending evictions until they have the latest version, one read at a time. */
export class PendingReader {
  readonly #read: () => Promise<PendingPage>;
  readonly #show: (page: PendingPage) => void;
  #latestVersion = 0;
  /** `undefined`: nothing of this server is shown. */
  #shownVersion: number | undefined;
  #connections = 0;
  #isReading = false;

  constructor(read: () => Promise<PendingPage>, show: (page: PendingPage) => void) {
    this.#read = read;
    this.#show = show;
  }

  /** A server that was restarted counts from the beginning. */
  reconnected(): void {
    this.#connections += 1;
    this.#latestVersion = 0;
    this.#shownVersion = undefined;
  }

  /** Reads unless `version`, the server's current one, is shown. Rejects when a read fails. */
  async announce(version: number): Promise<void> {
    this.#latestVersion = version;
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (this.#shownVersion !== this.#latestVersion) await this.#readOnce();
    } finally {
      this.#isReading = false;
    }
  }

  async #readOnce(): Promise<void> {
    const connection = this.#connections;
    const page = await this.#read();
    // A late answer of the server before a restart: its version is no version of the current server.
    if (connection !== this.#connections) return;
    this.#shownVersion = page.version;
    this.#latestVersion = Math.max(this.#latestVersion, page.version);
    this.#show(page);
  }
}
