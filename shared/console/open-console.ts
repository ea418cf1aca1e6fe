import { defined } from '#shared/defined.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { ApiServer } from './api-server.ts';
import type { PageFiles } from './page-files.ts';
import { type Console, startConsole } from './server.ts';

export interface ConsoleOfFleet {
  readonly host?: string | undefined;
  readonly port: number;
  readonly portSetBy: string;
  /** Makes the API for the page. Called on first use, and again after a failure. */
  readonly api: () => Promise<ApiServer>;
  /** Absent: the page of this release. */
  readonly page?: PageFiles;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Serves the console until it is closed. Page and API are loaded on first use: a service may run for months without
 * users. Rejects with `ConsoleAddressError`.
 */
export async function openConsole(options: ConsoleOfFleet): Promise<Console> {
  const { host, api, page, ...rest } = options;
  const content = async () => {
    const [made, { readPageFiles }] = await Promise.all([api(), import('./page-files.ts')]);
    return { api: made, page: page ?? readPageFiles() };
  };
  return startConsole({ ...rest, ...defined({ host }), content });
}
