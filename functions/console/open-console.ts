import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { FleetApiOptions } from './fleet-api.ts';
import type { PageFiles } from './page-files.ts';
import { type Console, startConsole } from './server.ts';

export interface ConsoleOfFleet {
  readonly host?: string | undefined;
  readonly port: number;
  /** What the operator sets it by. */
  readonly portSetBy: string;
  /** What the page asks. Called once somebody looks at it. */
  readonly asked: () => Promise<Omit<FleetApiOptions, 'clock' | 'log'>>;
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
  const { host, asked, page, ...rest } = options;
  const { clock, log } = rest;
  const content = async () => {
    const [{ fleetApi }, { readPageFiles }] = await Promise.all([
      import('./fleet-api.ts'),
      import('./page-files.ts'),
    ]);
    return { page: page ?? readPageFiles(), api: fleetApi({ ...(await asked()), clock, log }) };
  };
  return startConsole({ ...rest, ...(host === undefined ? {} : { host }), content });
}
