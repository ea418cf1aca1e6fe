import { defined } from '#shared/defined.ts';
import type { ListOptions, Page, Resource, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { pause } from '#shared/time/pause.ts';
import { retryMs } from './watch-with-timeout.ts';

/**
 * Yields a consistent list, page by page. A temporarily rejected page (429, 5xx) is requested again, after
 * `Retry-After`. Throws `ApiError` when the list must be started again.
 */
export async function* listPages<T>(
  resource: Resource<T>,
  {
    limit,
    signal,
    failed,
  }: Pick<ListOptions, 'signal'> & { readonly limit: number; failed(error: unknown): void },
): AsyncGenerator<Page<T>, void, undefined> {
  let token: string | undefined;
  let failures = 0;
  do {
    try {
      const page = await resource.list({
        limit,
        signal,
        ...defined({ continue: token }),
      });
      failures = 0;
      token = page.continue;
      yield page;
    } catch (error) {
      if (!isForNow(error) || signal.aborted) throw error;
      failed(error);
      failures += 1;
      await pause(retryMs(error, failures), signal);
    }
  } while (failures > 0 || token !== undefined);
}

const isForNow = (error: unknown): boolean =>
  error instanceof ApiError && (error.status === 429 || error.status >= 500);

/** Versions of a resource are decimal numbers of any length, and comparable (KEP-5504; in practice since etcd 3). */
export function isNewer(version: string, than: string): boolean {
  return version.length === than.length ? version > than : version.length > than.length;
}

export const newest = (a: string, b: string): string => (isNewer(a, b) ? a : b);

export const versionOf = (event: WatchEvent<{ readonly resourceVersion: string }>): string =>
  'object' in event ? event.object.resourceVersion : event.resourceVersion;
