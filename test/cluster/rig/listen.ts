import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { AdminApi } from './admin-api.ts';

export type Change = 'ADDED' | 'MODIFIED' | 'DELETED';

const List = z.object({ metadata: z.object({ resourceVersion: z.string() }) });
const WatchEvent = z.object({
  type: z.enum(['ADDED', 'MODIFIED', 'DELETED', 'ERROR']),
  object: z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string().optional() }).default({}) }),
});

const RESUME_AFTER_MS = 200;

export interface Listening {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  receive(change: Change, object: unknown): void;
  /** Called when no more changes will arrive. */
  failed(error: Error): void;
}

/**
 * Reports every change of a collection from now on, until the signal. Resolves as soon as no change can be missed. A
 * watch that breaks is resumed at its last resource version.
 */
export async function listen(api: AdminApi, options: Listening): Promise<void> {
  const { metadata } = List.parse(await api.read(options.path, { ...options.query, limit: '1' }));
  follow(api, options, metadata.resourceVersion).catch((error: unknown) => options.failed(error as Error));
}

async function follow(api: AdminApi, options: Listening, from: string): Promise<void> {
  const { path, query, signal, receive } = options;
  let version = from;
  while (!signal.aborted) {
    try {
      for await (const json of api.watch(path, { ...query, resourceVersion: version }, signal)) {
        const { type, object } = WatchEvent.parse(json);
        if (type === 'ERROR')
          throw new WatchLostError(`The watch of ${path} broke: ${JSON.stringify(object)}`);
        version = object.metadata.resourceVersion ?? version;
        receive(type, object);
      }
    } catch (error) {
      if (error instanceof WatchLostError || error instanceof z.ZodError) throw error;
      await delay(RESUME_AFTER_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

class WatchLostError extends Error {
  override readonly name = 'WatchLostError';
}
