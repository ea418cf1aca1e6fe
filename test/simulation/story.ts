import { type Log, type LogFields, logTo } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** The events, line by line, with seconds since the start; includes the log of the service. */
export class Story {
  readonly log: Log;
  /** Called with each line that the service logs. */
  onLogged: (event: string, fields: LogFields) => void = () => undefined;
  readonly #clock: Clock;
  readonly #startAt: EpochMs;
  readonly #lines: { readonly at: EpochMs; readonly event: string; readonly fields: LogFields }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startAt = clock.now();
    this.log = logTo((_severity, { event, fields }) => {
      this.add(event, fields);
      this.onLogged(event, fields);
    });
  }

  add(event: string, fields: LogFields): void {
    this.#lines.push({ at: this.#clock.now(), event, fields });
  }

  /** The lines as text. Most stories are never read, so the text is created on demand. */
  get lines(): readonly string[] {
    return this.#lines.map(({ at, event, fields }) => {
      const text = Object.entries(fields).map(([name, value]) => ` ${name}=${this.#worded(name, value)}`);
      return `${this.#seconds(at).toFixed(3)} ${event}${text.join('')}`;
    });
  }

  #worded(name: string, value: unknown): string {
    if (value instanceof Error) return value.message;
    if (typeof value === 'number' && name.endsWith('At')) return String(this.#seconds(value));
    return typeof value === 'object' ? JSON.stringify(value) : String(value);
  }

  #seconds(at: EpochMs): number {
    return (at - this.#startAt) / 1000;
  }
}
