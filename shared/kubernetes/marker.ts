import { FIELD_MANAGER } from '#shared/kubernetes/http/call.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { fieldsOf, itemsOf, textOf } from './http/api-json.ts';

/** Another installation of this service that marks pods of the same cluster. */
export interface Rival {
  readonly installation: string;
  /** By our clock. */
  readonly markedAt: EpochMs;
}

/** Prefix of the field managers of our marks; the installation's name follows. */
const PREFIX = `${FIELD_MANAGER}-`;
/** Maximum length of a field manager in the API server. */
const MAX_MANAGER_LENGTH = 128;
const MAX_RIVALS = 100;

/** The name under which pods are marked, and other installations that mark them: each evicts by its own rules. */
export class Marker {
  readonly manager: string;
  readonly #since: EpochMs;
  /** When each rival marked a pod last, by our clock. The key is its field manager. */
  readonly #rivals = new Map<string, EpochMs>();
  readonly #untold: string[] = [];

  /** `installation`: a unique name. `since`: earlier marks may be a former installation's. */
  constructor(installation: string, since: EpochMs) {
    this.manager = `${PREFIX}${installation}`.slice(0, MAX_MANAGER_LENGTH);
    this.#since = since;
  }

  /** Reads the markers of a pod from its JSON. `aheadMs`: by how much the server's clock, which dated the mark, is ahead. */
  read(pod: unknown, aheadMs = 0): void {
    for (const { manager, time } of itemsOf(fieldsOf(fieldsOf(pod)['metadata'])['managedFields']).map(
      fieldsOf,
    )) {
      const rival = textOf(manager);
      if (!rival.startsWith(PREFIX) || rival === this.manager) continue;
      const markedAt = Date.parse(textOf(time)) - aheadMs;
      const before = this.#rivals.get(rival);
      const isNow = markedAt > (before ?? this.#since);
      if (!isNow || (before === undefined && this.#rivals.size >= MAX_RIVALS)) continue;
      this.#rivals.set(rival, markedAt);
      if (before === undefined) this.#untold.push(rival.slice(PREFIX.length));
    }
  }

  get lastRival(): Rival | undefined {
    let last: Rival | undefined;
    for (const [rival, markedAt] of this.#rivals)
      if (!last || markedAt > last.markedAt) last = { installation: rival.slice(PREFIX.length), markedAt };
    return last;
  }

  /** Returns the name of another installation that marks pods here, each once; `undefined`: there is no new one. */
  takeRival(): string | undefined {
    return this.#untold.shift();
  }
}
