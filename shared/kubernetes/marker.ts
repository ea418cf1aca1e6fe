import { FIELD_MANAGER } from '#shared/kubernetes/http/call.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { fieldsOf, itemsOf, textOf } from './http/api-json.ts';

/** Another installation of this service that marks pods of the same cluster. */
export interface Rival {
  readonly installation: string;
  /** By our clock. */
  readonly markedAt: EpochMs;
}

/** The field managers of our marks begin so; what follows names the installation. */
const PREFIX = `${FIELD_MANAGER}-`;
/** What an API server takes for a field manager. */
const MAX_MANAGER_LENGTH = 128;
/** No more other installations than these are told of. */
const MAX_RIVALS = 100;

/**
 * Under which name pods of one cluster are marked, and who else marks them: another installation that evicts there does
 * the same work a second time, by rules of its own.
 */
export class Marker {
  /** The field manager of our marks. */
  readonly manager: string;
  readonly #since: EpochMs;
  /** By their field manager, when they marked a pod last, by our clock. */
  readonly #rivals = new Map<string, EpochMs>();
  readonly #untold: string[] = [];

  /** `installation`: a name that no other has. `since`: what was marked before may be a former installation's. */
  constructor(installation: string, since: EpochMs) {
    this.manager = `${PREFIX}${installation}`.slice(0, MAX_MANAGER_LENGTH);
    this.#since = since;
  }

  /** Looks who marked a pod, as its JSON tells. `aheadMs`: by how much the server's clock, which dated it, is ahead. */
  look(pod: unknown, aheadMs = 0): void {
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

  /** Which other installation marked a pod last, and when by our clock; `undefined`: none did. */
  get lastRival(): Rival | undefined {
    let last: Rival | undefined;
    for (const [rival, markedAt] of this.#rivals)
      if (!last || markedAt > last.markedAt) last = { installation: rival.slice(PREFIX.length), markedAt };
    return last;
  }

  /** The name of another installation that marks pods here, each once; `undefined`: none that is news. */
  takeRival(): string | undefined {
    return this.#untold.shift();
  }
}
