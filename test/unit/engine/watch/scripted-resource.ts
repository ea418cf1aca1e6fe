import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { versionOf } from '#shared/engine/watch/list-pages.ts';
import type { ListOptions, Page, Resource, WatchEvent, WatchOptions } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';

const BOOKMARK_MS = 60_000;

interface ScriptedWatch<T> {
  readonly events: readonly WatchEvent<T>[];
  /**
   * 'quiet': the watch stays open, with a bookmark every minute, until its time is over or its signal aborts, and then
   * ends without an error, as a real watch does; 'hang': the same without bookmarks; `undefined`: the server ends it.
   */
  readonly end: Error | 'quiet' | 'hang' | undefined;
  /** The time from the events to the end, in ms. */
  readonly afterMs?: number;
}

/** Returns a list of these objects, at version 1. */
export const listOf = <T = never>(...items: readonly T[]): Page<T> => ({ items, resourceVersion: '1' });

/** Returns a watch that sends these events, and then ends in this way. */
export const ends = <T = never>(
  end: ScriptedWatch<T>['end'],
  ...events: readonly WatchEvent<T>[]
): ScriptedWatch<T> => ({ events, end });

/** Returns a watch without events that ends after this time. */
export const endsAfter = (afterMs: number, end?: Error): ScriptedWatch<never> => ({
  ...ends(end),
  afterMs,
});

/**
 * A kind of object whose lists and watches follow a script. The last answer repeats. A watch with initial
 * events streams a list.
 */
export class ScriptedResource<T extends { readonly resourceVersion: string }> implements Resource<T> {
  readonly listed: ListOptions[] = [];
  readonly watched: WatchOptions[] = [];
  lists: (Page<T> | Error | 'hang')[] = [{ items: [], resourceVersion: '1' }];
  /** `true`: a watch with initial events takes them from `lists`; otherwise its script has them. */
  streams = true;
  watches: ScriptedWatch<T>[] = [{ events: [], end: 'quiet' }];

  async list(options: ListOptions): Promise<Page<T>> {
    return this.#answer(options);
  }

  async #answer(options: ListOptions): Promise<Page<T>> {
    this.listed.push(options);
    const answer = next(this.lists);
    if (answer === 'hang') {
      await once(options.signal, 'abort');
      throw new ApiError('the call was aborted', 0);
    }
    if (answer instanceof Error) throw answer;
    return answer;
  }

  async *watch(options: WatchOptions): AsyncGenerator<WatchEvent<T>, void, undefined> {
    this.watched.push(options);
    let { resourceVersion = '' } = options;
    if (options.initial && this.streams) {
      const page = await this.#answer(options);
      for (const object of page.items) yield { kind: 'upsert', object };
      ({ resourceVersion } = page);
      yield { kind: 'bookmark', resourceVersion, initialEnd: true };
    }
    options.opened?.();
    const { events, end, afterMs = 0 } = next(this.watches);
    for (const event of events) {
      resourceVersion = versionOf(event);
      yield event;
    }
    for (let openMs = 0; end === 'quiet' && openMs < options.timeoutSeconds * 1_000; openMs += BOOKMARK_MS) {
      await delay(BOOKMARK_MS, undefined, { signal: options.signal }).catch(() => undefined);
      if (options.signal.aborted) return;
      yield { kind: 'bookmark', resourceVersion };
    }
    if (end === 'hang') {
      if (!options.signal.aborted) await once(options.signal, 'abort');
      return;
    }
    if (afterMs > 0) await delay(afterMs, undefined, { signal: options.signal }).catch(() => undefined);
    if (options.signal.aborted) return;
    if (end instanceof Error) throw end;
  }
}

function next<Item>(script: Item[]): Item {
  const [first] = script.length > 1 ? script.splice(0, 1) : script;
  if (first === undefined) throw new Error('the script is empty');
  return first;
}
