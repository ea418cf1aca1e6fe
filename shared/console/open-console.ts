import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { ApiServer } from './api-server.ts';
import type { PageFiles } from './page-files.ts';
import { type Console, startConsole } from './server.ts';

export interface ConsoleOfFleet {
  readonly host?: string | undefined;
  readonly port: number;
  /** What the operator sets it by. */
  readonly portSetBy: string;
  /** What the page asks. Called once somebody looks at it, and again when that failed. */
  readonly api: () => Promise<ApiServer>;
  /** Absent: the one that is part of this release. */
  readonly page?: PageFiles;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Serves the console of a fleet, until it is closed. A service runs for months with nobody looking, so page and answers are loaded for the
 * first who does. Rejects with `ConsoleAddressError`.
 */
export async function openConsole(options: ConsoleOfFleet): Promise<Console> {
  const { host, api, page, ...rest } = options;
  const content = async () => {
    const [made, { readPageFiles }] = await Promise.all([api(), import('./page-files.ts')]);
    return { api: made, page: page ?? readPageFiles() };
  };
  return startConsole({ ...rest, ...(host === undefined ? {} : { host }), content });
}
