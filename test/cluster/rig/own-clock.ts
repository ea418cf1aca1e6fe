import { writeFileSync } from 'node:fs';

/** A clock that processes have of their own, so that it can be set as somebody sets a machine's. */
export class OwnClock {
  readonly #file: string;

  /** `file`: a path where nothing is yet. It is right until it is set. */
  constructor(file: string) {
    this.#file = file;
    this.set(0);
  }

  /** Sets it to so many milliseconds ahead of the machine's, or behind. */
  set(aheadMs: number): void {
    writeFileSync(this.#file, String(aheadMs));
  }

  /** The environment of processes that go by it. */
  get env(): Readonly<Record<string, string>> {
    const loaded = new URL('own-clock-loaded.ts', import.meta.url).href;
    return { NODE_OPTIONS: `--import=${loaded}`, OWN_CLOCK: this.#file };
  }
}
