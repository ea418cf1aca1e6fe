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
  readonly asked: () => Promise<FleetApiOptions>;
  /** Absent: the one that is part of this release. */
  readonly page?: PageFiles;
  readonly clock: Clock;
}

/**
 * Serves the console of a fleet, until it is closed. A service runs for months with nobody looking, so page and answers are loaded for the
 * first who does. Rejects with `ConsoleAddressError`.
 */
export async function openConsole(options: ConsoleOfFleet): Promise<Console> {
  const { host, port, portSetBy, asked, page, clock } = options;
  const content = async () => {
    const [{ fleetApi }, { readPageFiles }] = await Promise.all([
      import('./fleet-api.ts'),
      import('./page-files.ts'),
    ]);
    return { page: page ?? readPageFiles(), api: fleetApi(await asked()) };
  };
  return startConsole({ ...(host === undefined ? {} : { host }), port, portSetBy, content, clock });
}
