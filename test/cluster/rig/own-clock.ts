import { writeFileSync } from 'node:fs';

/** A wall clock for processes alone, which can be set as an administrator sets a machine's. */
export class OwnClock {
  readonly #file: string;

  /** `file`: a path where no file exists yet. The clock is right until it is set. */
  constructor(file: string) {
    this.#file = file;
    this.set(0);
  }

  /** Sets the clock to `aheadMs` milliseconds ahead of the machine's; negative: behind. */
  set(aheadMs: number): void {
    writeFileSync(this.#file, String(aheadMs));
  }

  /** The environment of processes that use this clock. */
  get env(): Readonly<Record<string, string>> {
    const loaded = new URL('own-clock-loaded.ts', import.meta.url).href;
    return { NODE_OPTIONS: `--import=${loaded}`, OWN_CLOCK: this.#file };
  }
}
